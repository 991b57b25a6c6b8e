import numpy as np
from numpy.typing import NDArray

_Beliefs = tuple[np.ndarray, ...]
_Sparse = tuple[np.ndarray, ...]
_Block = tuple[np.ndarray, ...]
_Pools = tuple[np.ndarray, ...]

class Graph:
    def __init__(self, indptr: NDArray[np.int64], edges: NDArray[np.int32]) -> None: ...

class RelationTable:
    def __init__(
        self,
        sub12: _Sparse,
        sub21: _Sparse,
        fun1: NDArray[np.float32],
        fun2: NDArray[np.float32],
        fallback: float,
    ) -> None: ...

def evidence(
    source: Graph,
    target: Graph,
    candidates: NDArray[np.int32],
    beliefs: _Beliefs,
    relations: RelationTable,
    source_is_graph1: bool,
    row_begin: int,
    row_end: int,
    n_threads: int,
    tier: str,
    by_neighbor: bool = ...,
    count_witnesses: bool = ...,
) -> tuple[NDArray[np.float32], NDArray[np.int32]]: ...
def blanket(
    source: Graph,
    target: Graph,
    candidates: NDArray[np.int32],
    beliefs: _Beliefs,
    belief_evidence: NDArray[np.float32],
    relations: RelationTable,
    source_is_graph1: bool,
    row_begin: int,
    row_end: int,
    n_threads: int,
    tier: str,
    by_neighbor: bool = ...,
) -> NDArray[np.float32]: ...
def relation_counts(
    source: Graph,
    target: Graph,
    beliefs: _Beliefs,
    num_source_relations: int,
    num_target_relations: int,
    scale_bits: int,
    row_begin: int,
    row_end: int,
    n_threads: int,
    tier: str,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
def containment(
    keys: NDArray[np.int64],
    num: NDArray[np.int64],
    den: NDArray[np.int64],
    scale_bits: int,
    num_target_relations: int,
    smoothing: float,
    prior: float,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...
def proposals(
    source: Graph,
    target: Graph,
    beliefs: _Beliefs,
    relations: RelationTable,
    open_rows: NDArray[np.uint8],
    open_targets: NDArray[np.uint8],
    k: int,
    budget: int,
    source_is_graph1: bool,
    row_begin: int,
    row_end: int,
    n_threads: int,
    tier: str,
    by_neighbor: bool = ...,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
def topk_merge(
    block: _Block,
    first_row: int,
    first_column: int,
    row_pools: _Pools,
    column_pools: _Pools,
    row_keep: int,
    column_keep: int,
    n_threads: int,
    tier: str,
) -> None: ...
def topk_partition(
    block: _Block,
    row_pools: _Pools,
    column_pools: _Pools,
    row_keep: int,
    column_keep: int,
    row_sums: NDArray[np.float64],
    row_anchor: NDArray[np.float32],
    column_sums: NDArray[np.float64],
    column_anchor: NDArray[np.float32],
    beta: float,
    n_threads: int,
    tier: str,
) -> None: ...
def topk_sort(pools: _Pools, keep: int, n_threads: int) -> None: ...
def topk_products(
    queries: NDArray[np.floating],
    keys: NDArray[np.floating],
    indices: NDArray[np.int32],
    distance: bool,
    n_threads: int,
    tier: str,
) -> NDArray[np.float64]: ...

class Int8Panels:
    def __init__(
        self, values: NDArray[np.floating], norms: NDArray[np.float64], bits: int, n_threads: int, tier: str
    ) -> None: ...

class Int8Side:
    def __init__(
        self,
        values: NDArray[np.floating],
        norms: NDArray[np.float64],
        weights: NDArray[np.float64],
        offsets: NDArray[np.float64],
        quanta: NDArray[np.float64],
        means: NDArray[np.float64] | None,
        floors: NDArray[np.float64] | None,
        excluded: NDArray[np.uint8] | None,
    ) -> None: ...

_Int8Found = tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.uint8], NDArray[np.float64]]

class Int8Search:
    def __init__(
        self,
        panels: Int8Panels,
        rows: Int8Side,
        columns: Int8Side,
        metric: str,
        k: int,
        beta: float | None,
        anchor: float,
        certain: bool,
        most_scored: int,
        n_threads: int,
        tier: str,
    ) -> None: ...
    def advance(self) -> int: ...
    def settle_columns(self) -> None: ...
    def of_rows(self) -> _Int8Found: ...
    def of_columns(self) -> _Int8Found: ...

def int8_tiers(fast_only: bool) -> list[str]: ...
def tiers() -> list[str]: ...
