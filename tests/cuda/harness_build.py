"""Builds the harness: once per session and variant, however many processes ask for it."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import build_cuda
from bench.lib.builds import BuildFolder

ROOT = Path(__file__).resolve().parents[2]
HARNESS = Path(__file__).resolve().parent / "harness"
PTX = Path(__file__).resolve().parent / "ptx"
COMPILER = "g++"
COMMON = ["-std=c++17", "-O1", "-g1", "-fPIC", "-ffp-contract=off", "-Wall", "-Wextra"]
SCHEDULER = ("fiber", "block", "warp_results", "launch", "runtime", "memory")
RUNNER = ("runner", "host_checks")
INTERPRETER = ("names", "parser", "flow", "values", "bits", "races", "warp", "memory", "machine", "launch")
PTX_ARCHITECTURES = ("compute_75", "compute_90")  # what nvcc makes for an old and for a newer GPU


@dataclass(frozen=True)
class Mode:
    """One way of compiling the kernels. The scheduler is told of a sanitizer, but not instrumented by it."""

    name: str
    sanitizer: tuple[str, ...] = ()
    define: tuple[str, ...] = ()


MODES = {
    "plain": Mode("plain"),
    "ucontext": Mode("ucontext", (), ("-DHARNESS_UCONTEXT",)),  # how fibers switch on other processors than x86-64
    "asan": Mode("asan", ("-fsanitize=address,undefined", "-fno-sanitize-recover=all"), ("-DHARNESS_ASAN",)),
    "ptx": Mode("ptx", (), ("-DHARNESS_PTX",)),  # executes what nvcc made of the kernels, see ../ptx
    "tsan": Mode("tsan", ("-fsanitize=thread",), ("-DHARNESS_TSAN",)),
}


class Builder(BuildFolder):
    """Objects and programs in one folder, shared by all test processes of a session."""

    def runner(self, mode: str) -> Path:
        """The program that runs the kernels of this checkout."""
        return self._linked(f"runner-{mode}", mode, lambda: self.kernels(mode))

    def mutant(self, mode: str, name: str, source: Path) -> Path:
        """The same program with kernels from a changed copy of csrc."""
        return self._linked(f"mutant-{name}", mode, lambda: self._kernels(f"mutant-{name}", mode, source))

    def kernels(self, mode: str) -> Path:
        """The object of the unchanged kernels."""
        return self._kernels(f"kernels-{mode}", mode, ROOT / "csrc")

    def module(self) -> Path:
        """`stea_fast._cuda` over host memory: the real bindings and the real kernels, without a GPU."""
        import pybind11

        includes = [f"-I{sysconfig.get_paths()['include']}", f"-I{pybind11.get_include()}"]
        bindings = self._compiled(
            "cuda_module.o", ROOT / "csrc/bindings/cuda_module.cpp", "plain", ["-O0", "-fvisibility=hidden", *includes]
        )
        objects = [bindings, self._compiled("control.o", HARNESS / "control.cpp", "plain"), self.kernels("plain")]
        return self.target(
            f"_cuda{sysconfig.get_config_var('EXT_SUFFIX')}",
            lambda path: run(["-shared", *objects, *self.scheduler("plain"), "-pthread", "-o", path]),
        )

    def driver(self) -> Path:
        """A libcuda.so.1 that executes PTX."""
        stems = [stem for stem in INTERPRETER if stem != "launch"]
        objects = [self._compiled(f"ptx-{x}.o", PTX / f"{x}.cpp", "ptx", ["-O2"]) for x in (*stems, "driver")]
        return self.target(
            "libcuda.so.1", lambda path: run(["-shared", "-Wl,-soname,libcuda.so.1", *objects, "-pthread", "-o", path])
        )

    def _linked(self, name: str, mode: str, kernels: Callable[[], Path]) -> Path:
        flags = MODES[mode].sanitizer

        def link(path: Path) -> None:
            parts = [self._compiled(f"{x}-{mode}.o", HARNESS / f"{x}.cpp", mode, flags) for x in RUNNER]
            run([*flags, kernels(), *parts, *self.scheduler(mode), "-pthread", "-o", path])

        return self.target(name, link)

    def scheduler(self, mode: str) -> list[Path]:
        """The objects of the harness itself."""
        objects = [self._compiled(f"{stem}-{mode}.o", HARNESS / f"{stem}.cpp", mode) for stem in SCHEDULER]
        if mode == "ptx":
            objects += [self._compiled(f"ptx-{x}.o", PTX / f"{x}.cpp", mode, ["-O2"]) for x in INTERPRETER]
        return objects

    def ptx(self, architecture: str = PTX_ARCHITECTURES[0], name: str = "", csrc: Path = ROOT / "csrc") -> str:
        """The PTX of every kernel, as STEA_PTX names it; of a changed copy of csrc under its name."""

        def compiled(stem: str) -> Path:
            source = csrc / "kernels" / "cuda" / f"{stem}.cu"
            flags = [*build_cuda.NVCC_FLAGS, f"-arch={architecture}", "-ptx", source, "-o"]
            return self.target(
                f"{name}{stem}-{architecture}.ptx", lambda path: run([*flags, path], build_cuda.find_toolkit().nvcc)
            )

        return ":".join(str(compiled(stem)) for stem in build_cuda.SOURCES if stem != "device")

    def _kernels(self, name: str, mode: str, source: Path) -> Path:
        flags = [*MODES[mode].sanitizer, f"-I{source}"]
        return self._compiled(f"{name}.o", HARNESS / "kernels.cpp", mode, flags)

    def _compiled(self, name: str, source: Path, mode: str, flags: Sequence[str] = ()) -> Path:
        arguments = [*COMMON, *MODES[mode].define, *flags, "-c", source, "-o"]
        return self.target(name, lambda path: run([*arguments, path]))


def run(arguments: Sequence[object], compiler: str = COMPILER) -> None:
    """Call the compiler; its messages are part of a failure."""
    result = subprocess.run([compiler, *map(str, arguments)], capture_output=True, text=True, check=False)
    if result.returncode != 0 or "warning" in result.stderr:
        raise AssertionError(f"{' '.join(map(str, arguments))}\n{result.stderr}")


def why_not() -> str | None:
    """Why the harness cannot be built here, if so."""
    return None if shutil.which(COMPILER) else f"the harness needs {COMPILER}"
