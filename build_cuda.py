"""The CUDA part of the build: `STEA_CUDA=auto|on|off`.

"on" without a toolkit is an error; "auto" builds where a toolkit is, and says in one line what it decided. The choice
follows the toolkit, not a GPU on the build host: the module imports without a driver and then reports no device.

`python build_cuda.py` compiles the kernels for every architecture and prints registers, shared memory and the
occupancy they allow, as a Markdown table; it fails if a kernel spills.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent
KERNELS = ROOT / "csrc" / "kernels"
SOURCES = ("device", "evidence", "mutual_best", "relation_counts")
ARCHITECTURES = (60, 70, 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)  # what nvcc does not know is left out
NVCC_FLAGS = ["-std=c++17", "-O3", "-Xcompiler", "-fPIC,-fvisibility=hidden"]


class ToolkitMissingError(RuntimeError):
    """Something of the CUDA toolkit is not there; the message says what."""


@dataclass(frozen=True)
class Toolkit:
    """nvcc, and the folder that holds the static runtime."""

    nvcc: str
    library_folder: Path
    release: str

    def architectures(self) -> list[int]:
        """Those of ARCHITECTURES that this nvcc compiles for."""
        listed = _output([self.nvcc, "--list-gpu-code"])
        return [number for number in ARCHITECTURES if f"sm_{number}\n" in listed + "\n"]

    def code_flags(self) -> list[str]:
        """Machine code for every architecture, and PTX of the oldest and of the newest for those that have none."""
        numbers = self.architectures()
        flags = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in numbers]
        flags += [f"-gencode=arch=compute_{n},code=compute_{n}" for n in (numbers[0], numbers[-1])]
        small = "--compress-mode" in _output([self.nvcc, "--help"])  # a quarter of the size; CUDA 12.8 brought it
        return [*flags, "--compress-mode=size"] if small else flags


def wanted() -> str:
    """The value of STEA_CUDA."""
    choice = os.environ.get("STEA_CUDA", "auto") or "auto"
    if choice not in ("auto", "on", "off"):
        raise SystemExit(f"STEA_CUDA must be auto, on or off; got {choice!r}")
    return choice


def find_toolkit() -> Toolkit:
    """The toolkit of the nvcc on PATH (or of CUDA_HOME); nvcc may be a wrapper, so it is asked where its root is."""
    home = os.environ.get("CUDA_HOME")
    nvcc = shutil.which("nvcc", path=str(Path(home) / "bin") if home else None)
    if nvcc is None:
        where = f"{home}/bin (CUDA_HOME)" if home else "PATH"
        raise ToolkitMissingError(f"no nvcc in {where}; install the CUDA toolkit, or name its folder in CUDA_HOME")
    dry_run = _output([nvcc, "--dryrun", "-x", "cu", "-c", os.devnull])
    top = re.search(r"^#\$ TOP=(.*)$", dry_run, re.MULTILINE)
    if top is None:
        raise ToolkitMissingError(f"{nvcc} --dryrun does not name its toolkit (no line TOP=)")
    root = Path(top.group(1).strip()).resolve()
    folders = [root / "lib64", root / "lib", *sorted(root.glob(f"targets/{os.uname().machine}-*/lib"))]
    for folder in folders:
        if (folder / "libcudart_static.a").exists():
            release = re.search(r"release ([\d.]+)", _output([nvcc, "--version"]))
            return Toolkit(nvcc, folder, release.group(1) if release else "unknown")
    raise ToolkitMissingError(f"no libcudart_static.a in {', '.join(map(str, folders))}")


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolkitMissingError(f"{command[0]} does not run: {error}") from None
    return done.stdout + done.stderr


def decide() -> Toolkit | None:
    """The toolkit to build with, or None; says what was decided."""
    choice = wanted()
    if choice == "off":
        return None
    try:
        toolkit = find_toolkit()
    except ToolkitMissingError as error:
        if choice == "on":
            raise SystemExit(f"STEA_CUDA=on, but the CUDA backend cannot be built: {error}") from None
        print(f"stea_fast: no CUDA backend: {error}", file=sys.stderr)
        return None
    print(f"stea_fast: CUDA backend with toolkit {toolkit.release}", file=sys.stderr)
    return toolkit


def run_time_sources() -> list[Path]:
    """The files with the kernels, and all that they include: what a compiler at run time reads."""
    waiting = [KERNELS / "cuda" / f"{stem}.cu" for stem in SOURCES if stem != "device"]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            names = re.findall(r'^#include "(.+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
            waiting += [(path.parent / name).resolve() for name in names]
    return sorted(found)


def compile_objects(toolkit: Toolkit) -> list[str]:
    """The kernels as objects for the linker, one nvcc per source at a time and several architectures at once.

    They are kept beside the sources: every editable install would otherwise compile them anew.
    """
    folder = ROOT / "build" / f"cuda-{toolkit.release}"
    folder.mkdir(parents=True, exist_ok=True)
    objects = []
    for stem in SOURCES:
        source, target = ROOT / "csrc" / "kernels" / "cuda" / f"{stem}.cu", folder / f"{stem}.cu.o"
        if _is_older(target, source):
            threads = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
            subprocess.run(
                [toolkit.nvcc, *NVCC_FLAGS, *toolkit.code_flags(), "--threads", threads, "-c", source, "-o", target],
                check=True,
            )
        objects.append(str(target))
    return objects


def _is_older(target: Path, source: Path) -> bool:
    """Whether the target must be made again: a header or its source is newer."""
    headers = [*source.parent.glob("*.h"), *source.parent.glob("*.cuh"), *source.parent.parent.glob("*.h")]
    newest = max(path.stat().st_mtime for path in [source, Path(__file__), *headers])
    return not target.exists() or target.stat().st_mtime < newest


@dataclass(frozen=True)
class KernelUse:
    """What ptxas says of one kernel on one architecture."""

    kernel: str
    architecture: int
    registers: int
    static_shared: int
    spills: int


def kernel_use(toolkit: Toolkit, folder: Path) -> list[KernelUse]:
    """Compile every source for every architecture and read ptxas's report."""
    found = []
    for stem in SOURCES:
        source = ROOT / "csrc" / "kernels" / "cuda" / f"{stem}.cu"
        command = [toolkit.nvcc, *NVCC_FLAGS, *toolkit.code_flags(), "-Xptxas", "-v", "--threads", "2", "-c"]
        done = subprocess.run(
            [*command, str(source), "-o", str(folder / f"{stem}.o")], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"nvcc failed on {source.name}:\n{done.stderr}")
        found += parse_ptxas(done.stderr)
    return found


def parse_ptxas(text: str) -> list[KernelUse]:
    """The kernels in the output of `ptxas -v`."""
    found = []
    for part in text.split("Compiling entry function ")[1:]:
        mangled, architecture = re.findall(r"'([^']+)'", part)[:2]
        registers = re.search(r"Used (\d+) registers", part)
        spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", part)
        if registers is None or len(spills) != 2:
            raise SystemExit(f"ptxas does not say what {mangled} uses:\n{part}")
        shared = re.search(r"(\d+) bytes smem", part)
        found.append(
            KernelUse(
                readable_name(mangled),
                int(architecture.removeprefix("sm_")),
                int(registers.group(1)),
                int(shared.group(1)) if shared else 0,
                sum(map(int, spills)),
            )
        )
    return found


def readable_name(mangled: str) -> str:
    """`best_of_rows<float>` from a mangled name: the last of its length-prefixed parts and the template argument."""
    rest, names = mangled.removeprefix("_ZN"), []
    while match := re.match(r"(\d+)", rest):
        length = int(match.group(1))
        names.append(rest[match.end() : match.end() + length])
        rest = rest[match.end() + length :]
    argument = {"If": "<float>", "Id": "<double>"}.get(rest[:2], "")
    return names[-1] + argument


# Shared memory in KiB, threads and blocks of one multiprocessor (CUDA C++ Programming Guide, table of compute
# capabilities). All have 65,536 registers, given to warps in units of 256. No figures for sm_110 were at hand.
MULTIPROCESSORS = {
    75: (64, 1024, 16), 80: (164, 2048, 32), 86: (100, 1536, 16), 89: (100, 1536, 24), 90: (228, 2048, 32),
    100: (228, 2048, 32), 120: (100, 1536, 24),
}  # fmt: skip
BLOCK_SIZE = 128  # the default of the launchers
DYNAMIC_SHARED = {"evidence_of_pairs": 4 * (32 * 32 + 64 * 16 + 104 * 16 + 256)}  # what the launchers ask for
RESERVED_SHARED = 1024  # per block, by the system, from sm_80 on


def occupancy(use: KernelUse) -> float | None:
    """Resident threads as a share of the most there can be, on paper, for blocks of BLOCK_SIZE; None if not known."""
    if use.architecture not in MULTIPROCESSORS:
        return None
    kibibytes, most_threads, most_blocks = MULTIPROCESSORS[use.architecture]
    warps = BLOCK_SIZE // 32
    registers_per_warp = -(-use.registers * 32 // 256) * 256
    by_registers = 65536 // registers_per_warp // warps
    shared = use.static_shared + DYNAMIC_SHARED.get(use.kernel, 0) + (RESERVED_SHARED if use.architecture >= 80 else 0)
    by_shared = kibibytes * 1024 // shared if shared else most_blocks
    blocks = min(by_registers, by_shared, most_blocks, most_threads // BLOCK_SIZE)
    return blocks * BLOCK_SIZE / most_threads


def _cell(use: KernelUse) -> str:
    share = occupancy(use)
    return f"{use.registers}" if share is None else f"{use.registers}, {share:.0%}"


def report(uses: list[KernelUse]) -> str:
    """A Markdown table: registers and occupancy of every kernel on every architecture."""
    architectures = sorted({use.architecture for use in uses})
    lines = ["| kernel | shared memory | " + " | ".join(f"sm_{n}" for n in architectures) + " |"]
    lines.append("| --- | ---: |" + " ---: |" * len(architectures))
    for kernel in sorted({use.kernel for use in uses}):
        of_kernel = {use.architecture: use for use in uses if use.kernel == kernel}
        cells = [_cell(of_kernel[n]) for n in architectures]
        shared = max(use.static_shared for use in of_kernel.values()) + DYNAMIC_SHARED.get(kernel, 0)
        lines.append(f"| `{kernel}` | {shared:,} B | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Compile everything, print the table, fail on spills."""
    with tempfile.TemporaryDirectory() as folder:
        uses = kernel_use(find_toolkit(), Path(folder))
    print(report(uses))
    spilling = [use for use in uses if use.spills]
    if spilling:
        raise SystemExit(f"spills: {spilling}")


if __name__ == "__main__":
    main()
