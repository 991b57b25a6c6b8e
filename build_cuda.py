"""The CUDA part of the build: `STEA_CUDA=auto|on|off`.

"on" without a toolkit is an error; "auto" builds where a toolkit is, and says in one line what it decided. The choice
follows the toolkit, not a GPU on the build host: the module imports without a driver and then reports no device.

`python build_cuda.py --report` compiles the kernels for every architecture and prints registers, shared memory, spills
and the occupancy they allow, as a Markdown table; it fails on spills.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent
SOURCES = ("device", "evidence", "mutual_best", "relation_counts")
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 110, 120)  # what the toolkit does not know is left out
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
        """Machine code for every architecture, and PTX of the newest for those to come."""
        numbers = self.architectures()
        flags = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in numbers]
        return [*flags, f"-gencode=arch=compute_{numbers[-1]},code=compute_{numbers[-1]}"]


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


def compile_objects(toolkit: Toolkit, folder: Path) -> list[str]:
    """The kernels as objects for the linker, one nvcc per source at a time and several architectures at once."""
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
    return not target.exists() or target.stat().st_mtime < max(path.stat().st_mtime for path in [source, *headers])
