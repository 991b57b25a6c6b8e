"""The compiled parts of stea_fast; everything else is in pyproject.toml.

`STEA_REQUIRE_NATIVE=1` (set by release builds) turns a failed native build into an error. Without it the
package installs all the same and runs on its Numba backend. `STEA_CUDA=auto|on|off` is in build_cuda.py.
`STEA_SANITIZE=address,undefined` or `thread` builds the native module for bench/hardening/sanitize.py.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_clib import build_clib
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import BaseError, CCompilerError, CompileError

sys.path.insert(0, str(Path(__file__).resolve().parent))  # a build front end need not run in this folder
import build_cuda

REQUIRE_NATIVE = os.environ.get("STEA_REQUIRE_NATIVE", "0") not in ("", "0")
IS_X86 = platform.machine().lower() in ("x86_64", "amd64", "i686", "i386")
# -ffp-contract=off: with fused multiply-add the tiers would differ in the last bits.
CFLAGS = ["-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-Wall", "-Wextra", "-Wno-psabi"]
SANITIZERS = os.environ.get("STEA_SANITIZE", "")
if SANITIZERS:  # the last -O counts; pybind11's classes have no type information that "vptr" could compare
    CFLAGS += ["-O1", "-g1", "-fno-omit-frame-pointer"]
    CFLAGS += [f"-fsanitize={SANITIZERS}", "-fno-sanitize=vptr", "-fno-sanitize-recover=all"]
HEADERS = sorted(str(path) for pattern in ("*.h", "*.inl", "*.cuh", "*.cu") for path in Path("csrc").rglob(pattern))


def tier_library(name: str, flags: list[str]) -> tuple[str, dict[str, object]]:
    """One static library per instruction set, so that each gets its own flags."""
    source = f"csrc/kernels/cpu/{name}.cpp"
    return (f"stea_{name}", {"sources": [source], "cflags": CFLAGS + flags, "obj_deps": {source: HEADERS}})


TIERS = [tier_library("tier_baseline", []), tier_library("int8_tier_baseline", [])]
if IS_X86:
    TIERS += [
        tier_library("tier_avx2", ["-mavx2", "-mbmi", "-mbmi2"]),
        tier_library("int8_tier_avx2", ["-mavx2"]),
        tier_library("int8_tier_avxvnni", ["-mavx2", "-mavxvnni"]),
        tier_library("int8_tier_avx512vnni", ["-mavx512f", "-mavx512vnni"]),
    ]


class BuildTiers(build_clib):
    """A tier that does not compile leaves the (optional) extension without it, which then fails to link."""

    def run(self) -> None:
        try:
            super().run()
        except (BaseError, CCompilerError, OSError) as error:
            if REQUIRE_NATIVE:
                raise
            print(f"stea_fast: native backend not built ({error}); Numba will be used", file=sys.stderr)


def core_extension():
    from pybind11.setup_helpers import Pybind11Extension

    return Pybind11Extension(
        "stea_fast._core",
        [
            "csrc/bindings/core_module.cpp",
            "csrc/bindings/encoder_functions.cpp",
            "csrc/bindings/int8_functions.cpp",
            "csrc/bindings/pair_set_functions.cpp",
            "csrc/bindings/topk_functions.cpp",
            "csrc/bindings/value_functions.cpp",
            "csrc/kernels/cpu/changes.cpp",
            "csrc/kernels/cpu/checks.cpp",
            "csrc/kernels/cpu/containment.cpp",
            "csrc/kernels/cpu/cosine_lists.cpp",
            "csrc/kernels/cpu/cosine_topk.cpp",
            "csrc/kernels/cpu/crew.cpp",
            "csrc/kernels/cpu/encoding.cpp",
            "csrc/kernels/cpu/int8_lines.cpp",
            "csrc/kernels/cpu/int8_panels.cpp",
            "csrc/kernels/cpu/int8_search.cpp",
            "csrc/kernels/cpu/int8_wave.cpp",
            "csrc/kernels/cpu/isa.cpp",
            "csrc/kernels/cpu/negatives.cpp",
            "csrc/kernels/cpu/pair_products.cpp",
            "csrc/kernels/cpu/pair_rows.cpp",
            "csrc/kernels/cpu/pair_values.cpp",
            "csrc/kernels/cpu/parallel_rows.cpp",
            "csrc/kernels/cpu/parallel_tasks.cpp",
            "csrc/kernels/cpu/relation_table.cpp",
            "csrc/kernels/cpu/run.cpp",
            "csrc/kernels/cpu/scratch.cpp",
            "csrc/kernels/cpu/token_counts.cpp",
            "csrc/kernels/cpu/topk.cpp",
        ],
        depends=HEADERS,
        define_macros=[("STEA_HAVE_AVX2", None)] if IS_X86 else [],
        extra_compile_args=CFLAGS,
        extra_link_args=["-pthread", *([f"-fsanitize={SANITIZERS}"] if SANITIZERS else [])],
        optional=not REQUIRE_NATIVE,
    )


def cuda_extension(toolkit: build_cuda.Toolkit):
    """The bindings, by the host compiler; the kernels' objects join at build time. The runtime is linked statically."""
    from pybind11.setup_helpers import Pybind11Extension

    return Pybind11Extension(
        "stea_fast._cuda",
        ["csrc/bindings/cuda_module.cpp"],
        depends=HEADERS,
        extra_compile_args=CFLAGS,
        extra_link_args=[f"-L{toolkit.library_folder}", "-lcudart_static", "-lrt", "-ldl", "-pthread"],
        optional=build_cuda.wanted() != "on",
    )


def cuda_jit_extension():
    """The same functions for kernels that are compiled at run time; needs neither the toolkit nor its runtime."""
    from pybind11.setup_helpers import Pybind11Extension

    folder = "csrc/kernels/cuda/driver"
    return Pybind11Extension(
        "stea_fast._cuda_jit",
        ["csrc/bindings/cuda_module.cpp", *(f"{folder}/{stem}.cpp" for stem in ("launchers", "library", "runtime"))],
        depends=HEADERS,
        define_macros=[("STEA_CUDA_JIT", None)],
        extra_compile_args=CFLAGS,
        extra_link_args=["-ldl", "-pthread"],
        optional=build_cuda.wanted() != "on",
    )


class BuildPackage(build_py):
    """Puts the sources of the kernels that are compiled at run time into the package."""

    def run(self) -> None:
        super().run()
        if not HAS_CUDA_DRIVERS or self.editable_mode:
            return
        for path in build_cuda.run_time_sources():
            target = Path(self.build_lib) / "stea_fast" / "_cuda_sources" / path.relative_to(build_cuda.KERNELS)
            self.mkpath(str(target.parent))
            self.copy_file(str(path), str(target))


class BuildExtensions(build_ext):
    """nvcc compiles the kernels before the module that holds them is linked; only the CPU's module holds the tiers."""

    def build_extension(self, ext) -> None:
        if ext.name == "stea_fast._cuda":
            try:
                ext.extra_objects = build_cuda.compile_objects(TOOLKIT)
            except subprocess.CalledProcessError as error:
                raise CompileError(f"nvcc failed: {error}") from None
        # setuptools links what build_clib has made into every extension, whether it uses it or not.
        everywhere = self.compiler.libraries
        if ext.name != "stea_fast._core":
            self.compiler.set_libraries([name for name in everywhere if not name.startswith("stea_")])
        try:
            super().build_extension(ext)
        finally:
            self.compiler.set_libraries(everywhere)


TOOLKIT = build_cuda.decide()
HAS_CUDA_DRIVERS = sys.platform == "linux" and build_cuda.wanted() != "off"

setup(
    libraries=TIERS,
    ext_modules=[
        core_extension(),
        *([cuda_extension(TOOLKIT)] if TOOLKIT else []),
        *([cuda_jit_extension()] if HAS_CUDA_DRIVERS else []),
    ],
    cmdclass={"build_clib": BuildTiers, "build_ext": BuildExtensions, "build_py": BuildPackage},
)
