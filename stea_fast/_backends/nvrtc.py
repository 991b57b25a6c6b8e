"""CUDA kernels compiled at run time by NVRTC, NVIDIA's compiler as a library; torch's CUDA builds bring it along."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from stea_fast._backends import BackendUnavailable

_PACKAGE = Path(__file__).resolve().parents[1]
_OPTIONS = ("--std=c++17", "-default-device", "-diag-suppress=177")  # 177: launchers that launch nothing
# The launchers are compiled beforehand; here they are only read, so what they need is a matter of form.
_STAND_INS = {
    "cstdint": """
#pragma once
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
""",
    "cmath": "#pragma once\n#define INFINITY __int_as_float(0x7f800000)\n",
    "string": "#pragma once\nnamespace std { struct string {}; }\n",
    "stdexcept": "#pragma once\nnamespace std { struct runtime_error { runtime_error(const char*) {} }; }\n",
    "cuda_runtime.h": """
#pragma once
typedef struct StreamOfTheHost* StreamPointer;
#define cudaError_t int
#define cudaStream_t StreamPointer
inline int cudaGetLastError() { return 0; }
""",
}
_BEGINNING = """
#define STEA_LAUNCH(...) ((void)0)
#define STEA_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
"""


@dataclass(frozen=True)
class Image:
    """Compiled kernels.

    Attributes:
        code: Machine code, or PTX, which the driver compiles.
        entries: What every kernel is called in it.
    """

    code: bytes
    entries: dict[str, str]


def sources() -> Path:
    """The folder with the kernels' sources: in the package, or beside it in a checkout."""
    for folder in (_PACKAGE / "_cuda_sources", _PACKAGE.parent / "csrc" / "kernels"):
        if (folder / "cuda").is_dir():
            return folder
    raise BackendUnavailable("the sources of the CUDA kernels are not part of this build")


def _files() -> list[Path]:
    folder = sources()
    return sorted([*folder.glob("*.h"), *(path for path in (folder / "cuda").iterdir() if path.is_file())])


def source_bytes() -> bytes:
    """All that decides what is compiled: files with their names, options, and stand-ins for missing headers."""
    parts = [str((_OPTIONS, _STAND_INS, _BEGINNING)).encode()]
    for path in _files():
        parts += [path.name.encode(), path.read_bytes()]
    return b"\0".join(parts)


def _program() -> bytes:
    stems = [path.name for path in _files() if path.suffix == ".cu" and path.stem != "device"]
    return (_BEGINNING + "".join(f'#include "cuda/{name}"\n' for name in stems)).encode()


def _candidates() -> Iterator[Path]:
    """Where libnvrtc may be: what was named, wheels of NVIDIA, torch itself, the toolkit."""
    if named := os.environ.get("STEA_NVRTC"):
        yield Path(named)
        return
    places = [(Path(home), "lib64") for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home]
    for package, inside in (("torch", "lib"), ("nvidia", "*/lib")):
        spec = importlib.util.find_spec(package)
        places = [*((Path(folder), inside) for folder in (spec and spec.submodule_search_locations) or ()), *places]
    for folder, inside in places:
        yield from sorted(folder.glob(f"{inside}/libnvrtc*.so*"), reverse=True)


@cache
def compiler() -> Compiler:
    """The first NVRTC that can be opened; torch's own release of CUDA comes first, which fits the driver."""
    failures: list[str] = []
    libraries = [path for path in _candidates() if not re.search(r"builtins|\balt\b|static", path.name)]
    for path in sorted(libraries, key=lambda path: _release_of_torch() not in path.name):
        found = _opened(path, failures)
        if found is not None:
            return found
    raise BackendUnavailable("; ".join(failures) or "no libnvrtc was found (torch's CUDA builds bring it along)")


def _opened(path: Path, failures: list[str]) -> Compiler | None:
    try:
        return Compiler(path)
    except (OSError, AttributeError) as error:
        failures.append(f"{path.name}: {error}")
        return None


def _release_of_torch() -> str:
    """ "so.12" for a torch with CUDA 12."""
    try:
        import torch
    except ModuleNotFoundError:
        return ""
    return f"so.{torch.version.cuda.split('.')[0]}" if torch.version.cuda else ""


class Compiler:
    """NVRTC in a file.

    Attributes:
        version: Of NVRTC, "13.0".
        architectures: Compute capabilities that it knows, 75 for 7.5, from old to new.
    """

    def __init__(self, path: Path) -> None:
        for builtins in sorted(path.parent.glob("libnvrtc-builtins*.so*")):
            if ".alt." not in builtins.name:  # NVRTC opens it by name, wherever the loader looks
                ctypes.CDLL(str(builtins))
        self._library = ctypes.CDLL(str(path))
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", numbers)
        self.architectures = sorted(numbers)

    def target(self, capability: int) -> str:
        """What to compile for: machine code for a device that NVRTC knows, PTX for a newer one."""
        if capability in self.architectures:
            return f"sm_{capability}"
        older = [number for number in self.architectures if number < capability]
        if not older:
            oldest = self.architectures[0]
            raise BackendUnavailable(
                f"NVRTC {self.version} compiles for compute capability {oldest // 10}.{oldest % 10} and later, "
                f"not for {capability // 10}.{capability % 10}"
            )
        return f"compute_{older[-1]}"

    def compile(self, target: str, kernels: Sequence[str]) -> Image:
        """Compile the kernels of these names ("best_of_rows<float>") for "sm_90" or, as PTX, for "compute_90"."""
        headers = {name: text.encode() for name, text in _STAND_INS.items()}
        program = ctypes.c_void_p()
        self._call(
            "nvrtcCreateProgram", ctypes.byref(program), _program(), b"stea_kernels.cu", len(headers),
            _strings(headers.values()), _strings(name.encode() for name in headers),
        )  # fmt: skip
        try:
            expressions = {name: f"stea::cuda::{name}".encode() for name in kernels}
            for expression in expressions.values():
                self._call("nvrtcAddNameExpression", program, expression)
            options = [*_OPTIONS, f"--gpu-architecture={target}", f"-I{sources()}"]
            status = self._library.nvrtcCompileProgram(program, len(options), _strings(map(os.fsencode, options)))
            if status:
                log = self._output("nvrtcGetProgramLog", program).decode(errors="replace")
                raise BackendUnavailable(f"NVRTC {self.version} cannot compile the kernels for {target}:\n{log}")
            entries = {name: self._entry(program, expression) for name, expression in expressions.items()}
            return Image(self._output("nvrtcGetCUBIN" if target.startswith("sm_") else "nvrtcGetPTX", program), entries)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _entry(self, program: ctypes.c_void_p, expression: bytes) -> str:
        name = ctypes.c_char_p()
        self._call("nvrtcGetLoweredName", program, expression, ctypes.byref(name))
        return (name.value or b"").decode()

    def _output(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(what, program, buffer)
        return buffer.raw

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise OSError(f"{function}: {self._library.nvrtcGetErrorString(status).decode()}")


def _strings(values: Any) -> Any:
    listed = list(values)
    return (ctypes.c_char_p * len(listed))(*listed)
