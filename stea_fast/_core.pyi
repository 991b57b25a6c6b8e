import numpy as np
from numpy.typing import NDArray

_Beliefs = tuple[np.ndarray, ...]
_Sparse = tuple[np.ndarray, ...]
_Block = tuple[np.ndarray, ...]
_Pools = tuple[np.ndarray, ...]
_Edges = tuple[np.ndarray, ...]
_Tokens = tuple[np.ndarray, ...]

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
def evidence_of_pairs(
    source: Graph,
    target: Graph,
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
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
def changes_around(
    source: Graph,
    shares: NDArray[np.float32],
    changes: NDArray[np.float32],
    moved: NDArray[np.float32],
    weights: NDArray[np.float32],
    row_begin: int,
    row_end: int,
    n_threads: int,
) -> NDArray[np.float32]: ...
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
def pair_products(
    queries: NDArray[np.floating],
    keys: NDArray[np.floating],
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    n_threads: int,
    tier: str,
) -> NDArray[np.float64]: ...
def pair_transpose(
    indptr: NDArray[np.int64], columns: NDArray[np.int32], num_columns: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def pair_union(
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    of_rows: NDArray[np.int32],
    back_rows: NDArray[np.int32],
    back_columns: NDArray[np.int32],
    num_columns: int,
    n_threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def pair_positions(
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    other_indptr: NDArray[np.int64],
    other_columns: NDArray[np.int32],
    num_columns: int,
    n_threads: int,
) -> NDArray[np.int32]: ...
def pair_known_values(
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    sets: list[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]],
    num_columns: int,
    n_threads: int,
) -> NDArray[np.float64]: ...
def pair_best(
    indptr: NDArray[np.int64],
    order: NDArray[np.int32] | None,
    values: NDArray[np.float64],
    k: int,
    least: float,
    n_threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def pair_log_sums(
    indptr: NDArray[np.int64], order: NDArray[np.int32] | None, values: NDArray[np.float64], n_threads: int
) -> NDArray[np.float64]: ...
def pair_probabilities(
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float64],
    row_sums: NDArray[np.float64],
    column_sums: NDArray[np.float64],
    n_threads: int,
) -> NDArray[np.float64]: ...
def pair_largest(
    indptr: NDArray[np.int64], order: NDArray[np.int32] | None, values: NDArray[np.float64], n_threads: int
) -> NDArray[np.float64]: ...
def pair_mutual_best(
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float64],
    largest_of_columns: NDArray[np.float64],
    n_threads: int,
) -> NDArray[np.uint8]: ...
def pair_scale_rows(
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float64],
    tails: NDArray[np.float64],
    column_factors: NDArray[np.float64],
    n_threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def pair_scaled(
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float64],
    row_factors: NDArray[np.float64],
    column_factors: NDArray[np.float64],
    n_threads: int,
) -> NDArray[np.float64]: ...
def pair_totals(
    evidence: NDArray[np.float32],
    witnesses: NDArray[np.int32],
    logits: NDArray[np.float64],
    weight: float,
    lone: float,
    n_threads: int,
) -> NDArray[np.float64]: ...
def pair_damped(
    values: NDArray[np.float64], earlier: NDArray[np.float64], places: NDArray[np.int32], share: float, n_threads: int
) -> NDArray[np.float64]: ...
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
def dense_product(
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    out: NDArray[np.float32],
    n_threads: int,
    tier: str,
) -> None: ...
def sparse_rows(
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    x: NDArray[np.float32],
    out: NDArray[np.float32],
    x_start: int,
    out_start: int,
    width: int,
    n_threads: int,
    tier: str,
) -> None: ...
def triple_view(
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    relations: NDArray[np.int32],
    strengths: NDArray[np.float32],
    x: NDArray[np.float32],
    out: NDArray[np.float32],
    out_start: int,
    squares: NDArray[np.float64],
    n_threads: int,
    tier: str,
) -> None: ...
def dropout(
    x: NDArray[np.float32],
    out: NDArray[np.float32],
    key: int,
    zeroed: int,
    scale: float,
    n_threads: int,
    tier: str,
) -> None: ...
def reflect_forward(
    graph: _Edges,
    position: NDArray[np.int32],
    z: NDArray[np.float32],
    source: int,
    target: int,
    unit: NDArray[np.float32],
    k_y: NDArray[np.float32],
    on_y: NDArray[np.float32],
    on_unit: NDArray[np.float32],
    activation: str,
    dots: NDArray[np.float32],
    weights: NDArray[np.float32],
    n_threads: int,
    tier: str,
) -> None: ...
def reflect_backward(
    graph: _Edges,
    position: NDArray[np.int32],
    z: NDArray[np.float32],
    source: int,
    unit: NDArray[np.float32],
    k_y: NDArray[np.float32],
    k_unit: NDArray[np.float32],
    on_y: NDArray[np.float32],
    dots: NDArray[np.float32],
    weights: NDArray[np.float32],
    activation: str,
    grad: NDArray[np.float32],
    outer: NDArray[np.float32],
    outer_position: NDArray[np.int32],
    d_x: NDArray[np.float32],
    d_unit: NDArray[np.float32],
    n_threads: int,
    tier: str,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]: ...
def hard_negatives(
    products: NDArray[np.float32],
    queries: NDArray[np.float32],
    z: NDArray[np.float32],
    norms: NDArray[np.float32],
    base: NDArray[np.float32],
    centre: NDArray[np.float32],
    ends: NDArray[np.int32],
    scale: float,
    cut: float,
    gradient: NDArray[np.float32],
    n_threads: int,
    tier: str,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]: ...
def byte_negatives(
    queries: NDArray[np.float32],
    z: NDArray[np.float32],
    norms: NDArray[np.float32],
    base: NDArray[np.float32],
    centre: NDArray[np.float32],
    ends: NDArray[np.int32],
    scale: float,
    cut: float,
    gradient: NDArray[np.float32],
    n_threads: int,
    tier: str,
    int8_tier: str,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]: ...

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
def token_counts(side1: _Tokens, side2: _Tokens, n_threads: int) -> tuple[np.ndarray, ...]: ...
def cosine_topk(
    queries: _Sparse,
    targets: _Sparse,
    num_columns: int,
    k: int,
    min_score: float,
    budget: int,
    n_threads: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32], int]: ...
def tiers() -> list[str]: ...
