"""Two GPUs that torch believes in: tensors on the host that pose as tensors of "cuda:0" and "cuda:1".

Every operation runs on the host, but as strictly as on a GPU: tensors of two devices do not mix, a tensor is exported
only while its own device is the current one, and copies to the host are counted.
"""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from harness_build import run
from torch.overrides import enable_reentrant_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

NUM_DEVICES = 2
HOST = torch.device("cpu")
MOST_COPIED = 1024  # elements of an array that may come to the host in a round
CUDA = 2  # DLPack's number of the kind of device


class Gpus:
    """What the posing devices know of themselves.

    Attributes:
        current: number of the current device.
        streams: the stream of every device; torch's legacy default stream is 0.
        copied: sizes of all arrays that were copied to the host.
        long_copies: what copied the arrays of more than `MOST_COPIED` elements, and how many these had.
        exports: (device, stream) of all arrays that were handed to the kernels.
        on_change: called with the current device whenever it changes, as the CUDA runtime would learn of it.
    """

    def __init__(self) -> None:
        self.current = 0
        self.streams = [0] * NUM_DEVICES
        self.copied: list[int] = []
        self.long_copies: list[str] = []
        self.exports: list[tuple[int, object]] = []
        self.on_change: Callable[[int], object] = lambda device: None

    def count(self, elements: int) -> None:
        """An array of so many elements is copied to the host."""
        self.copied.append(elements)
        if elements > MOST_COPIED:
            places = (f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_stack())
            ours = [place for place in places if "/stea_fast/" in place]
            self.long_copies.append(f"{elements} elements by " + " < ".join(reversed(ours)))

    def forget(self) -> None:
        """Count copies and exports from here on."""
        for found in (self.copied, self.long_copies, self.exports):
            found.clear()

    @contextmanager
    def device(self, place: object) -> Iterator[None]:
        """`torch.cuda.device`."""
        index = place if isinstance(place, int) else torch.device(place).index  # type: ignore[call-overload]
        before, self.current = self.current, self.current if index is None else index
        self.on_change(self.current)
        try:
            yield
        finally:
            self.current = before
            self.on_change(before)

    def current_stream(self, place: object = None) -> SimpleNamespace:
        """`torch.cuda.current_stream`."""
        index = None if place is None else place if isinstance(place, int) else torch.device(place).index  # type: ignore[call-overload]
        return SimpleNamespace(cuda_stream=self.streams[self.current if index is None else index])

    def named(self, place: object) -> torch.device:
        """A device with its number: "cuda" is the current one."""
        device = torch.device(place)  # type: ignore[call-overload]
        if device.type == "cuda" and device.index is None:
            return torch.device("cuda", self.current)
        return device


GPUS = Gpus()


class PosingTensor(torch.Tensor):
    """A tensor on the host (`held`) that says it is on a GPU.

    Gradients are those of what is held: autograd itself would ask the GPU for its streams.
    """

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor, device: torch.device) -> PosingTensor:
        shape, strides = held.shape, held.stride()
        return torch.Tensor._make_wrapper_subclass(cls, shape, strides=strides, dtype=held.dtype, device=device)  # type: ignore[attr-defined,no-any-return]

    def __init__(self, held: torch.Tensor, device: torch.device) -> None:
        self.held = held

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        with PosingMode():
            return function(*args, **(kwargs or {}))

    def __repr__(self):
        return f"{self.held!r} on {self.device}"

    def tolist(self):
        GPUS.count(self.held.numel())
        return self.held.tolist()

    def numpy(self, *, force=False):
        raise TypeError("can't convert a CUDA tensor to numpy; use .cpu() first")

    def __array__(self, *arguments, **options):
        raise TypeError("can't convert a CUDA tensor to numpy; use .cpu() first")

    def requires_grad_(self, requires_grad=True):
        self.held.requires_grad_(requires_grad)
        return self

    @property
    def grad(self):
        return None if self.held.grad is None else PosingTensor(self.held.grad, self.device)

    @grad.setter
    def grad(self, value):
        self.held.grad = None if value is None else value.held

    def data_ptr(self):
        return self.held.data_ptr()

    def __dlpack_device__(self):
        return CUDA, self.device.index

    def __dlpack__(self, *, stream=None):
        if self.device.index != GPUS.current:
            raise BufferError(f"can't export from device {self.device.index}: the current one is {GPUS.current}")
        GPUS.exports.append((self.device.index, stream))
        return self.held.__dlpack__()


class PosingMode(TorchDispatchMode):
    """Takes the host's tensors out of the posing ones, and puts what comes out on their device."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        places, alone = set(), []

        def held(value):
            if isinstance(value, PosingTensor):
                places.add(value.device)
                return value.held
            if isinstance(value, torch.Tensor):
                alone.append(value)
            return value

        kept_args, kept = tree_map(held, args), tree_map(held, dict(kwargs or {}))
        wanted = GPUS.named(kept["device"]) if kept.get("device") is not None else None
        copies = wanted is not None and function.overloadpacket in (torch.ops.aten._to_copy, torch.ops.aten.copy_)
        if function.overloadpacket is torch.ops.aten.copy_:
            return _copied(function, args, kept_args, kept)
        if len(places) > 1 or (places and any(value.ndim for value in alone)):
            found = sorted(map(str, places)) + ["cpu"] * bool(alone)
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found {', '.join(found)}: {function}"
            )
        if function.overloadpacket is torch.ops.aten._local_scalar_dense and places:
            GPUS.count(1)
        if wanted is not None:
            kept["device"] = HOST
            if copies and places and wanted.type == "cpu":
                GPUS.count(args[0].numel())
        place = wanted or next(iter(places), HOST)
        with enable_reentrant_dispatch() if places else nullcontext():
            out = function(*kept_args, **kept)
        return out if place.type == "cpu" else _posing(out, place, args)


_backward_of_held = torch.autograd.backward


def _backward(tensors, *arguments):
    _backward_of_held([tensor.held if isinstance(tensor, PosingTensor) else tensor for tensor in tensors], *arguments)


def _copied(function, args, kept_args, kept):
    """`to.copy_(from)`, across devices as well."""
    if isinstance(args[1], PosingTensor) and not isinstance(args[0], PosingTensor):
        GPUS.count(args[1].numel())
    function(*kept_args, **kept)
    return args[0]


def _posing(out, place, args):
    """What an operation returns, on a device; an operation in place returns the tensor that it changed."""
    known = {id(value.held): value for value in args if isinstance(value, PosingTensor)}

    def wrapped(value):
        if not isinstance(value, torch.Tensor) or isinstance(value, PosingTensor):
            return value
        return known[id(value)] if id(value) in known else PosingTensor(value, place)

    return tree_map(wrapped, out)


def build_guard(path: Path) -> None:
    """Compile what a torch without CUDA lacks."""
    folder = Path(torch.__file__).parent
    source = Path(__file__).with_name("posing_guard.cpp")
    run(["-std=c++20", "-shared", "-fPIC", f"-isystem{folder}/include", source, f"-L{folder}/lib", "-lc10", "-o", path])


@contextmanager
def posing_gpus(guard: Path) -> Iterator[Gpus]:
    """While this lasts, torch has two GPUs."""
    if torch.backends.cuda.is_built():
        pytest.skip("this torch has CUDA of its own")
    ctypes.CDLL(str(guard))
    GPUS.__init__()  # type: ignore[misc]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "_lazy_init": lambda: None,
            "is_available": lambda: True,
            "device_count": lambda: NUM_DEVICES,
            "current_device": lambda: GPUS.current,
            "device": GPUS.device,
            "current_stream": GPUS.current_stream,
            "is_current_stream_capturing": lambda: False,
        }.items():
            patch.setattr(torch.cuda, name, value)
        patch.setattr(torch.autograd, "backward", _backward)
        before = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(True)
        try:
            with PosingMode():
                yield GPUS
        finally:
            torch._C._set_only_lift_cpu_tensors(before)
