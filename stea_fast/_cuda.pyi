from typing import Any

_Arrays = tuple[Any, ...]  # with __dlpack__, on one device

class CudaError(RuntimeError): ...

def devices() -> tuple[int, str]: ...
def device_properties(device: int) -> tuple[str, int]: ...
def driver_version() -> int: ...
def device_type() -> int: ...
def evidence(
    source: _Arrays,
    target: _Arrays,
    candidates: Any,
    beliefs: _Arrays,
    believers: _Arrays,
    strengths: _Arrays,
    row_begin: int,
    row_end: int,
    out: Any,
    stream: int,
    by_neighbor: bool = ...,
    witness_count: Any = ...,
    block_size: int = ...,
) -> None: ...
def relation_counts(
    source: _Arrays,
    target: _Arrays,
    beliefs: _Arrays,
    num_source_relations: int,
    num_target_relations: int,
    scale_bits: int,
    edge_begin: int,
    edge_end: int,
    out: _Arrays,
    stream: int,
    block_size: int = ...,
) -> None: ...
def mutual_best(
    forward: _Arrays, backward: _Arrays, out: _Arrays, scratch: _Arrays, stream: int, block_size: int = ...
) -> None: ...
def mutual_best_double(
    forward: _Arrays, backward: _Arrays, out: _Arrays, scratch: _Arrays, stream: int, block_size: int = ...
) -> None: ...
