"""The CUDA backend: the kernels of `stea_fast._cuda` or `_cuda_jit` over torch tensors.

Contracts as in `reference.py` for NumPy arrays, which are copied to the device and back; `Kernels` is the same over
tensors that stay there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stea_fast._backends import NO_CUDA_BLANKET, BackendUnavailable
from stea_fast._backends.counts import RelationCounts, scale_bits
from stea_fast._backends.counts import containment as containment
from stea_fast._backends.cuda_modules import choose
from stea_fast._backends.witnesses import by_neighbour
from stea_fast.data.graph import KG
from stea_fast.types import Beliefs, RelationAlignment

LAUNCHERS = choose()
_cuda = LAUNCHERS.module
DLPACK_CUDA = 2


def describe() -> str:
    """What `python -m stea_fast info` says of this backend; raises where it cannot run."""
    how = LAUNCHERS.check()
    try:
        import torch
    except ModuleNotFoundError:
        raise BackendUnavailable("built, but torch is not installed, which holds the arrays") from None
    if device_kind() == "cuda" and not torch.cuda.is_available():
        raise BackendUnavailable(f"built, but this torch ({torch.__version__}) does not see the CUDA device")
    name, capability = _cuda.device_properties(0)
    others = f" and {_cuda.devices()[0] - 1} more" if _cuda.devices()[0] > 1 else ""
    return f"{name} (sm_{capability}){others}; {how}"


def device_kind() -> str:
    """The kind of torch device that the kernels work on; "cpu" only in the tests' build of them."""
    return "cuda" if _cuda.device_type() == DLPACK_CUDA else "cpu"


def first_capacity(num_edges: int) -> int:
    """Slots of the table of relation counts, a power of two; four times as many where these do not do."""
    return max(1 << 10, 1 << num_edges.bit_length())


class DeviceCounts(NamedTuple):
    """`RelationCounts` as int64 tensors."""

    keys: Any
    num: Any
    den: Any
    scale_bits: int


class Kernels:
    """The kernels over tensors of one device, on torch's current stream."""

    def __init__(self, device: Any) -> None:
        import torch

        self.torch = torch
        self.device = torch.device(device)

    def _call(self, kernel: Any, *arguments: Any) -> None:
        """Enqueue a kernel on torch's current stream of the device, which is current meanwhile: tensors are exported
        from the current device only, and no other device gets a context."""
        if self.device.type != "cuda":
            return kernel(*arguments, 0)
        with self.torch.cuda.device(self.device):
            LAUNCHERS.prepare(self.torch.cuda.current_device())
            kernel(*arguments, int(self.torch.cuda.current_stream(self.device).cuda_stream))
        return None

    def _empty(self, shape: Any, dtype: Any) -> Any:
        """From torch's allocator, which gives the memory back in the order of the stream."""
        try:
            return self.torch.empty(shape, dtype=dtype, device=self.device)
        except self.torch.OutOfMemoryError as error:
            needed = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            raise MemoryError(
                f"{needed:,} bytes are needed on {self.device} for shape {tuple(shape)}: {error}"
            ) from None

    def _zeros(self, size: int, dtype: Any) -> Any:
        return self._empty((size,), dtype).zero_()

    def evidence(
        self, source: Any, target: Any, candidates: Any, beliefs: Any, strengths: Any,
        *, rows: tuple[int, int], witnesses: str = "statement",
    ) -> Any:  # fmt: skip
        """L(e, e') for the candidates of a range of rows: float32, laid out as the candidates.

        Args:
            source, target: `DeviceGraph`.
            candidates: int32 [rows, k], -1 = none; or (indptr, columns), int64 [rows + 1] and int32 [pairs].
            beliefs: `DeviceBeliefs` of all source entities.
            strengths: `Strengths.forward` or `.backward`, as seen from the source graph.
            rows: begin and end of the range.
            witnesses: "statement" or "neighbour", as in `reference.py`.
        """
        given = source, target, candidates, beliefs, strengths
        return self.evidence_and_witnesses(*given, rows=rows, witnesses=witnesses, count=False)[0]

    def evidence_and_witnesses(
        self, source: Any, target: Any, candidates: Any, beliefs: Any, strengths: Any,
        *, rows: tuple[int, int], witnesses: str = "statement", count: bool = True,
    ) -> tuple[Any, Any]:  # fmt: skip
        """The same, and the number of neighbour pairs that add to L, int32, or None if they need no `count`."""
        from stea_fast._backends.device_data import transposed

        listed = candidates[1] if isinstance(candidates, tuple) else candidates
        out = self._empty((listed.numel(),), self.torch.float32)
        number = self._empty((listed.numel(),), self.torch.int32) if count else None
        graphs = (source.indptr, source.edges), (target.indptr, target.edges)
        believers = transposed(beliefs, target.num_entities)
        given = *graphs, candidates, tuple(beliefs), tuple(believers), strengths.table
        strongest = by_neighbour(witnesses)

        def enqueue(stream: int) -> None:
            _cuda.evidence(*given, *rows, out, stream, strongest, number)

        self._call(enqueue)
        shape = tuple(listed.shape)
        return out.reshape(shape), None if number is None else number.reshape(shape)

    def relation_counts(self, source: Any, target: Any, beliefs: Any, *, edges: tuple[int, int]) -> DeviceCounts:
        """num(r, r') and den(r) over the statements among a range of the source graph's edges."""
        integers = self.torch.int64
        capacity = first_capacity(len(source.edges))
        graphs = (source.indptr, source.edges), (target.indptr, target.edges)
        relations = source.num_relations, target.num_relations
        bits = scale_bits(source)
        while True:
            keys, num = self._zeros(capacity, integers), self._zeros(capacity, integers)
            den, overflow = self._zeros(source.num_relations, integers), self._zeros(1, self.torch.int32)
            out = keys, num, den, overflow
            self._call(_cuda.relation_counts, *graphs, tuple(beliefs), *relations, bits, *edges, out)
            if not overflow.item():
                break
            capacity *= 4
        used = keys > 0
        keys, order = self.torch.sort(keys[used] - 1)
        return DeviceCounts(keys, num[used][order], den, bits)

    def mutual_best(self, forward: tuple[Any, Any], backward: tuple[Any, Any]) -> tuple[Any, Any]:
        """Every source row's partner (int32, -1 for none) and √(score·score'); scores float32 or float64."""
        scores = forward[1]
        sizes, kinds = (len(scores), len(backward[1])), (self.torch.int32, scores.dtype)
        out = tuple(self._empty((sizes[0],), kind) for kind in kinds)
        scratch = tuple(self._empty((size,), kind) for size in sizes for kind in kinds)
        kernel = _cuda.mutual_best_double if scores.dtype == self.torch.float64 else _cuda.mutual_best
        self._call(kernel, forward, backward, out, scratch)
        return out[0], out[1]


def strengths(relations: RelationAlignment, kg1: KG, kg2: KG) -> Any:
    """The relation table on the default device; one serves both directions."""
    from stea_fast._backends.device_data import DeviceAlignment, Strengths
    from stea_fast.data.device_graph import DeviceGraph

    device = _default_device()
    graphs = DeviceGraph.upload(kg1, device), DeviceGraph.upload(kg2, device)
    return Strengths.of(DeviceAlignment.upload(relations, device), *graphs)


def evidence(
    source: KG, target: KG, candidates: np.ndarray, beliefs: Beliefs, strengths: Any,
    *, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> np.ndarray:  # fmt: skip
    """L(e, e') for every row e and candidate e'."""
    import torch

    kernels, graphs, held = _uploaded(source, target, beliefs)
    chosen = strengths.forward if forward else strengths.backward
    indices = torch.tensor(candidates, device=kernels.device)
    return kernels.evidence(*graphs, indices, held, chosen, rows=rows, witnesses=witnesses).cpu().numpy()


def evidence_and_witnesses(
    source: KG, target: KG, candidates: np.ndarray, beliefs: Beliefs, strengths: Any,
    *, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """L(e, e') and the number of neighbour pairs that add to it."""
    import torch

    kernels, graphs, held = _uploaded(source, target, beliefs)
    chosen = strengths.forward if forward else strengths.backward
    indices = torch.tensor(candidates, device=kernels.device)
    found = kernels.evidence_and_witnesses(*graphs, indices, held, chosen, rows=rows, witnesses=witnesses)
    return found[0].cpu().numpy(), found[1].cpu().numpy()


def blanket(*arguments: Any, **options: Any) -> np.ndarray:
    """Not offered."""
    raise BackendUnavailable(NO_CUDA_BLANKET)


def relation_counts(
    source: KG, target: KG, beliefs: Beliefs, *, rows: tuple[int, int], n_threads: int = 1
) -> RelationCounts:
    """num(r, r') and den(r) over the triples whose head is in the range of rows."""
    kernels, graphs, held = _uploaded(source, target, beliefs)
    edges = int(source.indptr[rows[0]]), int(source.indptr[rows[1]])
    counts = kernels.relation_counts(*graphs, held, edges=edges)
    keys, num, den = (part.cpu().numpy() for part in (counts.keys, counts.num, counts.den))
    return RelationCounts(keys, num, den, counts.scale_bits)


def _default_device() -> Any:
    import torch

    kind = device_kind()
    return torch.device(kind, torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)


def _uploaded(source: KG, target: KG, beliefs: Beliefs) -> tuple[Kernels, tuple[Any, Any], Any]:
    from stea_fast._backends.device_data import DeviceBeliefs
    from stea_fast.data.device_graph import DeviceGraph

    device = _default_device()
    graphs = DeviceGraph.upload(source, device), DeviceGraph.upload(target, device)
    return Kernels(device), graphs, DeviceBeliefs.upload(beliefs, device)
