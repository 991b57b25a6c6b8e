"""`topk`: the nearest neighbours of every entity in the other graph, both directions from one pass."""

from __future__ import annotations

import importlib.util
from functools import partial
from types import ModuleType

import numpy as np

from stea_fast import _backends
from stea_fast._executors.base import Executor
from stea_fast._executors.named import executor_of
from stea_fast._util import validate
from stea_fast._util.array_ops import Ops
from stea_fast._util.arrays import is_torch, like
from stea_fast._util.progress import Progress, Step, steps
from stea_fast._util.threads import thread_count
from stea_fast.search.embeddings import METRICS, Embeddings, Scoring, check_pair
from stea_fast.search.engines.partitioned import PartitionedEngine
from stea_fast.search.exact import EXTRA_CANDIDATES, SearchRequest, search_rows
from stea_fast.search.pair_scores import PairScorer
from stea_fast.search.ranked import CandidateEngine
from stea_fast.search.sampled_sums import sampled_sums
from stea_fast.types import Array, ArrayLike, Ranking, TopK

ENGINES = ("auto", "native", "numba", "torch", "faiss", "partitioned", "faiss-ivf", "faiss-hnsw", "reference")
APPROXIMATE = ("partitioned", "faiss-ivf", "faiss-hnsw")
RECALL_SAMPLE_ROWS = 256  # rows of each direction on which approximate search is compared with exact search
LEAST_WORK_FOR_A_GPU = 1e11  # multiplications above which FAISS is asked for GPUs


def topk(
    emb1: ArrayLike,
    emb2: ArrayLike,
    k: int = 10,
    csls: int = 10,
    metric: str = "cosine",
    *,
    engine: str = "auto",
    beta: float | None = None,
    n_threads: int | None = None,
    executor: str | Executor | None = None,
    progress: Progress = None,
) -> TopK:
    """Find the k nearest targets of every source and the k nearest sources of every target, best first.

    The result is exact: that of a brute-force search in double precision. Ties go to the lower index; scores are tied
    if they are equal when rounded to 2^-36 of the largest possible score of the row. Nothing of size |E|×|E'| is
    stored. How the products are made (8-bit numbers with certain bounds where the processor is fast at them, float32
    otherwise and for more than 65,536 dimensions) changes no bit of the candidates; `stea-fast info` says which it is.

    Args:
        emb1: The embeddings of the source entities, [n1, d], NumPy or torch, float16 to float64; they need not be
            normalised.
        emb2: The embeddings of the target entities, [n2, d], of the same kind and on the same device.
        k: The number of candidates of a row. Where the other side has fewer, rows end with index -1 and score -inf.
        csls: The number c of neighbours that CSLS averages over: score = 2·sim(i, j) − mean of row i's c largest
            similarities − mean of column j's. It takes a second pass over all pairs; 0 gives the plain similarity.
        metric: "cosine" (a zero vector has similarity 0 with everything, and so has one shorter than 2^-500), "ip" (the
            inner product) or "l2" (negative squared distance).
        engine: "native", "numba", "torch" (any device), "faiss" (exact; on its GPUs if they answer), "partitioned" (by
            cosine only), "faiss-ivf" or "faiss-hnsw" (approximate: `recall` of the result says what was measured on a
            sample), or "reference". "auto" leaves tensors on a GPU where they are, and takes the fastest exact engine
            of this machine otherwise: FAISS, if it has GPUs, for large searches without `beta`, whose sums it cannot
            take.
        beta: An inverse temperature. If it is given, `log_partition` of the result holds log Σ exp(β·score) over all
            targets of every row, and over all sources of every column, from the same pass, right to 1e-3, or estimated
            from a sample where the engine is approximate; `refine` uses them. The default, None, leaves them out.
        n_threads: The number of threads that search; the default, None, takes `STEA_NUM_THREADS` or all CPUs. Matrix
            products in float32 use the threads of their BLAS.
        executor: Where the cells of the engine "partitioned" are searched, as for `refine`, to the same bits; other
            engines search in this process. The default, None, takes the threads of this process.
        progress: True shows progress, False shows none, a function is called with (done, total); the default, None,
            shows progress on a terminal only.

    Returns:
        A `TopK`: candidates in both directions, int indices and float32 scores [n1, k] and [n2, k], of the kind of the
        embeddings and on their device.

    Raises:
        ValueError: An argument has an unusable value; the message says what was expected.
        TypeError: An argument is of the wrong type.
        BackendUnavailable: The engine asked for cannot run here.
        ExecutorError: The workers of an executor cannot be used; the message says why.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> candidates = sf.topk(np.eye(3), np.eye(3)[[2, 0, 1]], k=2, csls=0)
        >>> candidates.forward.indices[:, 0].tolist(), candidates.backward.indices[:, 0].tolist()
        ([1, 2, 0], [2, 0, 1])
    """
    k, csls = validate.count(k, "k", minimum=1), validate.count(csls, "csls")
    validate.choice(metric, "metric", METRICS)
    validate.choice(engine, "engine", ENGINES)
    if beta is not None:
        beta = validate.number(beta, "beta", minimum=0.0)
    side1, side2 = _sides(emb1, emb2, engine)
    check_pair(side1, side2, metric)
    if engine == "partitioned" and metric != "cosine":
        raise ValueError(f"engine='partitioned' searches by cosine only, got metric={metric!r}; use 'faiss-ivf'")
    threads = thread_count(n_threads)
    chosen = _engine(engine, side1, side2, threads, max(k, csls) if beta is None else None)
    if isinstance(chosen, PartitionedEngine):
        chosen.executor = executor_of(executor)
    passes = 2 if csls else 1
    total = float(passes * len(side1) * len(side2))
    with steps(progress, total, f"top-{k} of {len(side1):,} x {len(side2):,}") as step:
        return _search(chosen, side1, side2, k, csls, metric, beta, threads, step, template=emb1)


def pair_scorer(emb1: Array, emb2: Array, means: tuple[Array, Array] | None) -> PairScorer:
    """The scores of a search that was made before, by cosine; `means` are those of its CSLS, None if it had none."""
    side1, side2 = _sides(emb1, emb2, "auto")
    scoring = Scoring.of("cosine", side1, side2)
    if means is not None:
        scoring = scoring.with_csls(*(like(side1.norms, mean) for mean in means))
    return PairScorer(side1, side2, scoring)


def _sides(emb1: Array, emb2: Array, engine: str) -> tuple[Embeddings, Embeddings]:
    """Tensors stay tensors if they are on a GPU or the torch engine is asked for."""
    if not (is_torch(emb1) and is_torch(emb2)):
        if engine == "torch":
            raise TypeError("engine='torch' needs tensors")
        return Embeddings.numpy(emb1, "emb1"), Embeddings.numpy(emb2, "emb2")
    if emb1.device != emb2.device:
        raise ValueError(f"emb1 and emb2 must be on one device, got {emb1.device} and {emb2.device}")
    if engine == "torch" or (engine in ("auto", "partitioned") and emb1.device.type != "cpu"):
        return Embeddings.torch(emb1, "emb1"), Embeddings.torch(emb2, "emb2")
    return Embeddings.numpy(emb1, "emb1"), Embeddings.numpy(emb2, "emb2")


def _engine(name: str, side1: Embeddings, side2: Embeddings, n_threads: int, neighbours: int | None) -> CandidateEngine:
    """The engine of a name; `neighbours` says how many are asked for if neighbours are all that is asked for."""
    if not isinstance(side1.array, np.ndarray):
        from stea_fast.search.engines.torch_engine import TorchEngine

        exact = TorchEngine()
        return PartitionedEngine(exact, exact_engine, 1) if name == "partitioned" else exact
    if name == "reference":
        from stea_fast.search.engines.reference_engine import ReferenceEngine

        return ReferenceEngine()
    if name == "partitioned":
        return PartitionedEngine(_engine("auto", side1, side2, n_threads, neighbours), exact_engine, n_threads)
    merging = _merging_kernels("auto" if name == "auto" or name.startswith("faiss") else name)
    work = float(len(side1)) * len(side2) * side1.width
    if name.startswith("faiss") or (name == "auto" and work > LEAST_WORK_FOR_A_GPU and _faiss_has_gpus(neighbours)):
        return _faiss_engine(name, merging, n_threads)
    return _cpu_engine(merging, n_threads)


def exact_engine(n_threads: int) -> CandidateEngine:
    """The engine by which a worker searches a cell: its results are those of every exact engine."""
    return _cpu_engine(_merging_kernels("auto"), n_threads)


def _cpu_engine(merging: ModuleType, n_threads: int) -> CandidateEngine:
    if merging.__name__.endswith(".native_merge"):
        from stea_fast.search.engines.int8 import Int8Engine

        return Int8Engine(n_threads)
    from stea_fast.search.engines.cpu import CpuEngine

    return CpuEngine(merging, n_threads)


def _merging_kernels(name: str) -> ModuleType:
    backend = _backends.resolve(name)
    if backend.__name__.endswith(".native"):
        from stea_fast.search.engines import native_merge

        return native_merge
    from stea_fast.search.engines import numba_merge

    return numba_merge


def _faiss_engine(name: str, merging: ModuleType, n_threads: int) -> CandidateEngine:
    from stea_fast.search.engines.cpu import CpuEngine

    try:
        from stea_fast.search.engines.faiss_engine import FaissEngine
    except ImportError as error:
        raise _backends.BackendUnavailable(
            f"engine {name!r} needs FAISS: pip install 'stea-fast[faiss]' or 'stea-fast[faiss-gpu]' ({error})"
        ) from None
    products = partial(merging.products, n_threads=n_threads)
    return FaissEngine(name.partition("-")[2] or "flat", products, CpuEngine(merging, n_threads).partition)


def _faiss_has_gpus(neighbours: int | None) -> bool:
    """Whether FAISS has GPUs, and can do there all that is asked for."""
    if neighbours is None or importlib.util.find_spec("faiss") is None:
        return False
    from stea_fast.search.engines.faiss_engine import MOST_ON_A_GPU, num_gpus

    return neighbours + EXTRA_CANDIDATES <= MOST_ON_A_GPU and num_gpus() > 0


def _search(
    engine: CandidateEngine, side1: Embeddings, side2: Embeddings, k: int, csls: int, metric: str, beta: float | None,
    n_threads: int, step: Step, template: Array,
) -> TopK:  # fmt: skip
    scoring = Scoring.of(metric, side1, side2)
    near = None
    if csls:
        near = engine.rank(SearchRequest(side1, side2, scoring, csls, None, step))
        nearest = near.forward[1], near.backward[1]
        scoring = scoring.with_csls(*(_mean(scores, side1.ops) for scores in nearest))
    found = engine.rank(SearchRequest(side1, side2, scoring, k, beta if engine.is_exact else None, step), near)
    forward, backward, sums = found.forward, found.backward, found.log_partition
    recall = None
    if not engine.is_exact:
        swapped = scoring.swapped()
        recall = _recall(forward[0], side1, side2, scoring), _recall(backward[0], side2, side1, swapped)
        if beta is not None:
            sums = (
                sampled_sums(side1, side2, scoring, beta, forward[1], n_threads),
                sampled_sums(side2, side1, swapped, beta, backward[1], n_threads),
            )
    logs = None if sums is None else (_like(template, sums[0]), _like(template, sums[1]))
    return TopK(
        _ranking(forward, template), _ranking(backward, template),
        log_partition=logs, beta=beta, engine=engine.name, recall=recall,
        score=PairScorer(side1, side2, scoring),
    )  # fmt: skip


def _mean(scores: Array, ops: Ops) -> Array:
    """The mean of every row, without the places that have no candidate; 0 if it has none."""
    present = scores > -np.inf
    return ops.divide(ops.where(present, scores, 0.0).sum(1), ops.double(present.sum(1)))


def _recall(indices: Array, queries: Embeddings, keys: Embeddings, scoring: Scoring) -> float:
    """The share of the true nearest that were found, on evenly spaced rows."""
    rows = queries.ops.positions(np.unique(np.linspace(0, len(queries) - 1, RECALL_SAMPLE_ROWS).astype(np.int64)))
    true, _ = search_rows(rows, queries, keys, scoring, min(indices.shape[1], len(keys)))
    found = (true[:, :, None] == indices[rows][:, None, :]).any(2)
    return float(queries.ops.double(found).mean())


def _ranking(best: tuple[Array, Array], template: Array) -> Ranking:
    indices, scores = best
    if isinstance(indices, np.ndarray):
        # Tensors are indexed by int64; NumPy takes any integer, and int32 is half as large.
        indices, scores = indices.astype(np.int64 if is_torch(template) else np.int32), scores.astype(np.float32)
        return Ranking(like(template, indices), like(template, scores))
    return Ranking(indices, scores.float())


def _like(template: Array, values: Array) -> Array:
    return like(template, values) if isinstance(values, np.ndarray) else values
