"""Every entry point of `stea_fast._core`, called with changed arguments: it raises an exception or returns.

Run by `bench/hardening/sanitize.py` under AddressSanitizer, which ends the process at the first access outside an
array.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.hardening import encoder_calls, mutations, pair_set_calls
from bench.hardening.graph_pairs import random_problem
from stea_fast import _core
from stea_fast.search.engines.cpu import Pools

Arguments = dict[str, Any]
MEMORY = 4 << 30  # sizes are changed as well: what asks for more must be told that there is none


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="number of the first call; it is the seed")
    parser.add_argument("--count", type=int, default=2000, help="number of calls")
    parser.add_argument("--journal", type=Path, help="file that says which call is being made")
    arguments = parser.parse_args()
    faulthandler.enable()
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # which has a limit of its own, and maps far more than it uses
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    outcomes: collections.Counter[str] = collections.Counter()
    for number in range(arguments.first, arguments.first + arguments.count):
        outcomes[call(number, arguments.journal)] += 1
    print(f"{arguments.count} changed calls of {len(MAKERS)} entry points: {dict(outcomes)}")


def entry_points() -> set[str]:
    """All that the module offers; none may be left out."""
    return {name for name in dir(_core) if not name.startswith("_")}


def call(number: int, journal: Path | None = None) -> str:
    """Make one call, noted beforehand; returns the name of the exception, or "result"."""
    rng = np.random.default_rng(number)
    name = sorted(MAKERS)[number % len(MAKERS)]
    given = MAKERS[name](rng)
    if number >= len(MAKERS):  # the first of each is called as it is
        for key in rng.permutation(sorted(given))[: int(rng.integers(1, 4))]:
            given[str(key)] = mutations.mutated(given[key], rng)
    if journal:
        journal.write_text(f"{number} {name}\n", encoding="utf-8")
    try:
        _touch(getattr(_core, name)(**{key: _made(key, value) for key, value in given.items()}))
    except Exception as error:  # any exception is an answer; a crash is none
        return type(error).__name__
    return "result"


def _made(argument: str, value: Any) -> Any:
    """What a call takes that is no array is made of changed arrays as well, when the call is made."""
    kind = _CLASSES.get(argument)
    return kind(*value) if kind is not None and isinstance(value, tuple) else value


def _touch(result: Any) -> None:
    """Read all that came back; a search that was prepared is made."""
    if isinstance(result, _core.Int8Search):
        while result.advance():
            pass
        result.settle_columns()
        result = result.of_rows() + result.of_columns()
    for part in result if isinstance(result, tuple) else (result,):
        if isinstance(part, np.ndarray):
            part.tobytes()


def _graphs(rng: np.random.Generator) -> tuple[Arguments, Arguments]:
    """What the kernels over graphs take: both graphs and the beliefs, and what some of them take beside these."""
    kg1, kg2, candidates, beliefs, relations = random_problem(rng)
    graphs = {"source": (kg1.indptr, kg1.edges), "target": (kg2.indptr, kg2.edges), "beliefs": tuple(beliefs)}
    table = {
        "sub12": _sparse(relations.sub12), "sub21": _sparse(relations.sub21), "fun1": kg1.inverse_functionality,
        "fun2": kg2.inverse_functionality, "fallback": relations.default,
    }  # fmt: skip
    others = {
        "candidates": candidates, "table": table, "sizes": (kg1.num_relations, kg2.num_relations),
        "run": {"row_begin": 0, "row_end": kg1.num_entities, "n_threads": int(rng.integers(1, 4)), "tier": ""},
        "masks": (np.ones(kg1.num_entities, dtype=np.uint8), np.ones(kg2.num_entities, dtype=np.uint8)),
    }  # fmt: skip
    return graphs, others


def _sparse(matrix: Any) -> tuple[np.ndarray, ...]:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data


def _graph(rng: np.random.Generator) -> Arguments:
    indptr, edges = _graphs(rng)[0]["source"]
    return {"indptr": indptr, "edges": edges}


def _relation_table(rng: np.random.Generator) -> Arguments:
    return _graphs(rng)[1]["table"]


def _over_rows(rng: np.random.Generator) -> tuple[Arguments, Arguments]:
    graphs, others = _graphs(rng)
    seen = {"relations": tuple(others["table"].values()), "source_is_graph1": True, "by_neighbor": rng.random() < 0.5}
    return {**graphs, **seen, **others["run"]}, others


def _evidence(rng: np.random.Generator) -> Arguments:
    given, others = _over_rows(rng)
    return {**given, "candidates": others["candidates"], "count_witnesses": given["by_neighbor"]}


def _blanket(rng: np.random.Generator) -> Arguments:
    given, others = _over_rows(rng)
    held = rng.random(len(given["beliefs"][1]), dtype=np.float32)
    return {**given, "candidates": others["candidates"], "belief_evidence": held}


def _proposals(rng: np.random.Generator) -> Arguments:
    given, others = _over_rows(rng)
    return {**given, "open_rows": others["masks"][0], "open_targets": others["masks"][1], "k": 3, "budget": 200}


def _changes(rng: np.random.Generator) -> Arguments:
    graphs, others = _graphs(rng)
    sizes = 2 * others["sizes"][0], len(graphs["source"][0]) - 1
    names = ("shares", "changes"), ("moved", "weights")
    numbers = {name: rng.random(n, dtype=np.float32) for n, pair in zip(sizes, names, strict=True) for name in pair}
    return {"source": graphs["source"], **numbers, **{k: v for k, v in others["run"].items() if k != "tier"}}


def _relation_counts(rng: np.random.Generator) -> Arguments:
    graphs, others = _graphs(rng)
    sizes = dict(zip(("num_source_relations", "num_target_relations"), others["sizes"], strict=True))
    return {**graphs, **sizes, "scale_bits": 40, **others["run"]}


def _containment(rng: np.random.Generator) -> Arguments:
    r, r2 = (int(size) for size in rng.integers(1, 9, size=2))
    keys = np.flatnonzero(rng.random(r * 2 * r2) < 0.5)
    num, den = rng.integers(1, 2**40, size=len(keys)), rng.integers(1, 2**45, size=r)
    options = {"scale_bits": 45, "num_target_relations": r2, "smoothing": 1.0, "prior": 0.1}
    return {"keys": keys, "num": num, "den": den, **options}


def _pools(rng: np.random.Generator, lines: int, keep: int) -> tuple[np.ndarray, ...]:
    pools = Pools(lines, keep, None)
    pools.entries["score"] = rng.standard_normal(pools.entries.shape)
    pools.entries["index"] = rng.integers(100, size=pools.entries.shape)
    pools.sizes[:] = rng.integers(keep + 1, size=lines)
    pools.threshold[:] = np.where(pools.sizes == keep, pools.entries["score"].min(initial=0.0), -np.inf)
    return pools.part(slice(None))


def _block(rng: np.random.Generator) -> Arguments:
    rows, columns = (int(size) for size in rng.integers(0, 70, size=2))
    scales = [rng.random(size, dtype=np.float32) for size in (rows, columns, rows, columns)]
    keeps = [int(keep) for keep in rng.choice([1, 5, 80], size=2)]
    pools = {"row_pools": _pools(rng, rows, keeps[0]), "column_pools": _pools(rng, columns, keeps[1])}
    run = {"row_keep": keeps[0], "column_keep": keeps[1], "n_threads": 2, "tier": ""}
    return {"block": (rng.standard_normal((rows, columns), dtype=np.float32), *scales), **pools, **run}


def _merge(rng: np.random.Generator) -> Arguments:
    return {**_block(rng), "first_row": 0, "first_column": 0}


def _partition(rng: np.random.Generator) -> Arguments:
    given = _block(rng)
    rows, columns = given["block"][0].shape
    sums = {"row_sums": np.ones(rows), "column_sums": np.ones(columns)}
    anchors = {"row_anchor": np.zeros(rows, np.float32), "column_anchor": np.zeros(columns, np.float32)}
    return {**given, **sums, **anchors, "beta": 2.0}


def _sort(rng: np.random.Generator) -> Arguments:
    keep = int(rng.choice([1, 5, 80]))
    return {"pools": _pools(rng, int(rng.integers(0, 60)), keep), "keep": keep, "n_threads": 2}


def _side(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    lengths = rng.integers(0, 9, size=int(rng.integers(0, 30)))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return rng.integers(0, 40, size=offsets[-1]).astype(np.uint64), offsets


def _token_counts(rng: np.random.Generator) -> Arguments:
    return {"side1": _side(rng), "side2": _side(rng), "n_threads": int(rng.integers(1, 4))}


def _cosine(rng: np.random.Generator) -> Arguments:
    sides = []
    for rows in rng.integers(0, 40, size=2):
        held = rng.random((rows, 30)) < 0.2
        indptr = np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int64)
        weights = rng.uniform(0.01, 0.4, size=indptr[-1]).astype(np.float32)
        sides.append((indptr, np.nonzero(held)[1].astype(np.int32), weights))
    options = {"num_columns": 30, "k": int(rng.choice([1, 5, 80])), "min_score": 0.05, "budget": 10_000, "n_threads": 2}
    return {"queries": sides[0], "targets": sides[1], **options}


def _products(rng: np.random.Generator) -> Arguments:
    rows, keys, width, k = (int(size) for size in rng.integers(0, 20, size=4))
    kind = rng.choice([np.float32, np.float64])
    left, right = (rng.standard_normal((count, width)).astype(kind) for count in (rows, keys))
    indices = rng.integers(-1, max(keys, 0), size=(rows, k)).astype(np.int32)
    return {"queries": left, "keys": right, "indices": indices, "distance": True, "n_threads": 2, "tier": ""}


def _int8_sides(rng: np.random.Generator) -> tuple[Arguments, Arguments]:
    """Two sides of one width: (values, norms, weights, offsets, quanta, means, floors, excluded)."""
    width, kind, with_means = int(rng.integers(1, 40)), rng.choice([np.float32, np.float64]), rng.random() < 0.5
    sides = []
    for _ in range(2):
        count = int(rng.choice([rng.integers(1, 200), 241, 337]))  # these make one block more than rows fill
        values = rng.standard_normal((count, width)).astype(kind)
        numbers = (
            np.linalg.norm(values.astype(float), axis=1),
            np.ones(count),
            np.zeros(count),
            np.full(count, 2.0**-36),
        )
        means, floors = rng.random(count) if with_means else None, -rng.random(count) if rng.random() < 0.5 else None
        excluded = rng.integers(2, size=count).astype(np.uint8) if rng.random() < 0.3 else None
        names = "values", "norms", "weights", "offsets", "quanta", "means", "floors", "excluded"
        sides.append(dict(zip(names, (values, *numbers, means, floors, excluded), strict=True)))
    return sides[0], sides[1]


def _int8_panels(rng: np.random.Generator) -> Arguments:
    side = _int8_sides(rng)[0]
    options = {"bits": int(rng.choice([8, 16])), "n_threads": 2, "tier": str(rng.choice(_core.int8_tiers(False)))}
    return {"values": side["values"], "norms": side["norms"], **options}


def _int8_search(rng: np.random.Generator) -> Arguments:
    rows, columns = _int8_sides(rng)
    bits = int(rng.choice([8, 16]))
    panels = columns["values"], columns["norms"], bits, 2, str(rng.choice(_core.int8_tiers(False)))
    sides = {"panels": panels, "rows": tuple(rows.values()), "columns": tuple(columns.values())}
    sums = {"beta": 2.0 if bits == 16 and rng.random() < 0.5 else None, "anchor": 0.0}
    effort = {"certain": rng.random() < 0.5, "most_scored": int(rng.choice([1, 20, 2048]))}
    metric, k = str(rng.choice(["cosine", "ip", "l2"])), int(rng.choice([1, 7, 300]))
    return {**sides, **sums, **effort, "metric": metric, "k": k, "n_threads": 2, "tier": ""}


_CLASSES: dict[str, Callable[..., Any]] = {
    "source": _core.Graph,
    "target": _core.Graph,
    "relations": _core.RelationTable,
    "panels": _core.Int8Panels,
    "rows": _core.Int8Side,
    "columns": _core.Int8Side,
}


def _pair_products(rng: np.random.Generator) -> Arguments:
    given = _products(rng)
    sizes = len(given["queries"]), len(given["keys"])
    count = 0 if 0 in sizes else int(rng.integers(0, 600))
    rows, columns = (rng.integers(max(size, 1), size=count).astype(np.int32) for size in sizes)
    kept = {name: given[name] for name in ("queries", "keys", "n_threads", "tier")}
    return {**kept, "rows": np.sort(rows), "columns": columns}


def _evidence_of_pairs(rng: np.random.Generator) -> Arguments:
    given = _evidence(rng)
    candidates = given.pop("candidates")
    counts = (candidates >= 0).sum(axis=1)
    return {**given, "indptr": np.concatenate([[0], np.cumsum(counts)]), "columns": candidates[candidates >= 0]}


MAKERS: dict[str, Callable[[np.random.Generator], Arguments]] = {
    "Graph": _graph,
    "Int8Panels": _int8_panels,
    "Int8Search": _int8_search,
    "Int8Side": lambda rng: _int8_sides(rng)[0],
    "RelationTable": _relation_table,
    "blanket": _blanket,
    "byte_negatives": encoder_calls.byte_negatives,
    "changes_around": _changes,
    "containment": _containment,
    "cosine_topk": _cosine,
    "dense_product": encoder_calls.dense_product,
    "dropout": encoder_calls.dropout,
    "evidence": _evidence,
    "hard_negatives": encoder_calls.hard_negatives,
    "int8_tiers": lambda rng: {"fast_only": rng.random() < 0.5},
    "evidence_of_pairs": _evidence_of_pairs,
    "pair_best": lambda rng: {**pair_set_calls.pair_groups(rng), "k": 3, "least": 0.1},
    "pair_damped": pair_set_calls.pair_damped,
    "pair_known_values": pair_set_calls.pair_known_values,
    "pair_largest": pair_set_calls.pair_groups,
    "pair_log_sums": pair_set_calls.pair_groups,
    "pair_mutual_best": pair_set_calls.pair_mutual_best,
    "pair_positions": pair_set_calls.pair_positions,
    "pair_probabilities": lambda rng: pair_set_calls.pair_values(rng, ("row_sums", "column_sums")),
    "pair_products": _pair_products,
    "pair_scale_rows": lambda rng: pair_set_calls.pair_values(rng, ("tails", "column_factors")),
    "pair_scaled": lambda rng: pair_set_calls.pair_values(rng, ("row_factors", "column_factors")),
    "pair_totals": pair_set_calls.pair_totals,
    "pair_transpose": lambda rng: dict(
        zip(("indptr", "columns", "num_columns"), pair_set_calls.pair_transpose(rng), strict=True)
    ),
    "pair_union": pair_set_calls.pair_union,
    "proposals": _proposals,
    "reflect_backward": encoder_calls.reflect_backward,
    "reflect_forward": encoder_calls.reflect_forward,
    "relation_counts": _relation_counts,
    "sparse_rows": encoder_calls.sparse_rows,
    "tiers": lambda _: {},
    "token_counts": _token_counts,
    "topk_merge": _merge,
    "triple_view": encoder_calls.triple_view,
    "topk_partition": _partition,
    "topk_products": _products,
    "topk_sort": _sort,
}

if __name__ == "__main__":
    main()
