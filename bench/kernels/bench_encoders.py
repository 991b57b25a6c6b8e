"""One training step of every encoder against a plain version of the same mathematics, and one round by stage.

The plain version gathers a vector per edge, scatters the sums, and leaves every gradient to torch; Dual-AMN's takes
all negatives. Both get the same weights and random numbers, and their gradients are compared first.

python -m bench.kernels.bench_encoders [--case dbp15k_zh_en] [--encoders dual_amn,rrea,gcn_align,propagation]
                               [--parts step,round] [--rounds 3] [--epochs 5] [--threads 2] [--warm-up 0]
                               [--json out.json]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

import stea_fast as sf
from bench.lib.folders import DATA
from bench.lib.inputs import SYNTHETIC, MissingDataError
from bench.lib.measure import Timing, duration, machine_facts, markdown, times
from stea_fast import encoders
from stea_fast._util.memory import peak
from stea_fast.encoders import _negatives, _ops, _ranking, _reflection, gcn_align
from stea_fast.encoders._graph import Entries, joint_triples

Result = dict[str, Any]
Loss = Callable[[], torch.Tensor]
BAR = ("dual_amn", "dbp15k_zh_en", 3.0)
TOLERANCE = 1e-4


def product(matrix: Entries, x: torch.Tensor) -> torch.Tensor:
    """A x by gather and scatter."""
    rows = torch.from_numpy(np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr)))
    parts = torch.from_numpy(matrix.values)[:, None] * x[torch.from_numpy(matrix.columns)]
    return x.new_zeros(len(matrix.indptr) - 1, x.shape[1]).index_add(0, rows, parts)


def plain_reflection(encoder: Any) -> Callable[[], torch.Tensor]:
    """The embeddings of Dual-AMN and RREA, with dropout."""
    graph, neighbors = encoder.graph, encoder.graph.neighbor_mean()

    def embed() -> torch.Tensor:
        relations = encoder.parameters["relations"]
        inputs = product(neighbors, encoder.parameters["entities"]), product(graph.relation_mean, relations)
        x = torch.cat(inputs, dim=1)
        rho = product(graph.members, relations)
        unit = rho * rho.square().sum(1, keepdim=True).clamp_min(1e-12).rsqrt()
        attention = encoder.parameters["attention"].expand(-1, 2, -1, -1)
        z = _reflection.plain(graph, x, unit, attention, encoder.activation)
        return _ops.dropout(z, encoder.dropout_rate, encoder.generator)

    return embed


def dual_amn_losses(encoder: Any, pairs: torch.Tensor) -> tuple[Loss, Loss]:
    batch, embed = pairs[: encoder.batch_size], plain_reflection(encoder)
    plain = lambda: _negatives.plain(embed(), batch[:, 0], batch[:, 1], encoder.gamma, encoder.scale)  # noqa: E731
    return plain, lambda: encoder.loss(batch)


def rrea_losses(encoder: Any, pairs: torch.Tensor) -> tuple[Loss, Loss]:
    triplets, embed = encoder.draw_triplets(pairs), plain_reflection(encoder)
    plain = lambda: _ranking.plain(embed(), triplets, encoder.margin) / encoder.num_entities  # noqa: E731
    return plain, lambda: encoder.loss(triplets)


def gcn_align_losses(encoder: Any, pairs: torch.Tensor) -> tuple[Loss, Loss]:
    triplets, (kg1, kg2) = encoder.draw_triplets(pairs), (encoder.kg1, encoder.kg2)
    relations = kg1.num_relations + kg2.num_relations
    matrix = gcn_align._adjacency(joint_triples(kg1, kg2), encoder.num_entities, relations)

    def plain() -> torch.Tensor:
        vectors = encoder.parameters["vectors"]
        rows = vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-9)
        z = product(matrix, torch.relu(product(matrix, rows)))
        return _ranking.plain(z, triplets, encoder.margin) / len(triplets)

    return plain, lambda: encoder.loss(triplets)


LOSSES = {"dual_amn": dual_amn_losses, "rrea": rrea_losses, "gcn_align": gcn_align_losses}


def one_step(encoder: Any, loss: Loss) -> tuple[float, dict[str, torch.Tensor]]:
    """Seconds of one step, and its gradients. Weights and random numbers are put back."""
    state = encoder.state()
    encoder._begin(torch.empty(0, 2))
    begin = perf_counter()
    with _ops.flushed_denormals():
        encoder._step(loss())
    seconds = perf_counter() - begin
    gradients = {name: value.grad.clone() for name, value in encoder.parameters.items()}
    encoder.load_state(state)
    return seconds, gradients


def step(name: str, pair: sf.Pair, rounds: int, warm_up: int) -> Result:
    """Gradients compared, then both versions in turns."""
    encoder: Any = encoders.make(name, pair.kg1, pair.kg2)
    if warm_up:
        encoder.fit(pair.train, warm_up)
    pairs = torch.from_numpy(np.asarray(pair.train, dtype=np.int64) + np.array([0, pair.kg1.num_entities]))
    plain, fast = LOSSES[name](encoder, pairs)
    (_, expected), (_, got) = one_step(encoder, plain), one_step(encoder, fast)
    errors = {key: float((got[key] - expected[key]).norm() / expected[key].norm()) for key in expected}
    seconds: dict[str, list[float]] = {"plain": [], "fast": []}
    for number in range(rounds):
        contenders = [("plain", plain), ("fast", fast)]
        for label, loss in contenders[:: 1 if number % 2 else -1]:
            seconds[label].append(one_step(encoder, loss)[0])
    timings = {label: Timing.of(values).as_dict() for label, values in seconds.items()}
    ratio = timings["plain"]["median"] / timings["fast"]["median"]
    return {"seconds": timings, "ratio": ratio, "gradient_error": max(errors.values()), "errors": errors}


def whole_round(name: str, pair: sf.Pair, epochs: int | None) -> Result:
    """Seconds of making the encoder, of one epoch (the first compiles), of a round's epochs, of the embeddings."""
    marks = [perf_counter()]
    encoder: Any = encoders.make(name, pair.kg1, pair.kg2)
    marks.append(perf_counter())
    encoder.fit(pair.train, 1)
    marks.append(perf_counter())
    encoder.fit(pair.train, epochs or encoder.round_epochs)
    marks.append(perf_counter())
    first, _ = encoder.embeddings()
    marks.append(perf_counter())
    return {
        "seconds": dict(zip(("make", "first epoch", "fit", "embeddings"), np.diff(marks).tolist(), strict=True)),
        "epochs": epochs or encoder.round_epochs,
        "columns": int(first.shape[1]),
        "peak_mb": peak() / 1e6,
    }


def step_report(case: str, results: dict[str, Result]) -> str:
    rows = []
    for name, result in results.items():
        medians = [duration(result["seconds"][label]["median"]) for label in ("plain", "fast")]
        verdict = ""
        if (name, case) == BAR[:2]:
            met = result["ratio"] >= BAR[2] and result["gradient_error"] <= TOLERANCE
            verdict = f"≥ {BAR[2]:g} × with error ≤ {TOLERANCE:g}: {'met' if met else 'MISSED'}"
        rows.append([name, *medians, times(result["ratio"]), f"{result['gradient_error']:.1e}", verdict])
    return markdown([f"one step, {case}", "plain", "fast", "ratio", "gradient error", "bar"], rows)


def round_report(case: str, results: dict[str, Result]) -> str:
    rows = [
        [
            f"{name}, {result['epochs']} epochs",
            *(duration(value) for value in result["seconds"].values()),
            f"{result['columns']:,}",
            f"{result['peak_mb']:,.0f} MB",
        ]
        for name, result in results.items()
    ]
    note = "The peak is that of the process so far: run one encoder alone to know its own."
    header = [f"one round, {case}", "make", "first epoch", "fit", "embeddings", "columns", "peak of the process"]
    return markdown(header, rows) + "\n\n" + note


def load(case: str, seed_fraction: float) -> sf.Pair:
    if case in SYNTHETIC:
        return sf.synthetic_pair(num_entities=SYNTHETIC[case], seed_fraction=seed_fraction)
    if not (DATA / case).is_dir():
        raise MissingDataError(f"no data in {DATA / case}; set STEA_DATA")
    return sf.load_pair(DATA / case, seed_fraction=seed_fraction)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time the encoders.")
    parser.add_argument("--case", default="dbp15k_zh_en")
    parser.add_argument("--seed-fraction", type=float, default=0.3)
    parser.add_argument("--encoders", default="dual_amn,rrea,gcn_align,propagation", help="with commas")
    parser.add_argument("--parts", default="step,round", help="some of them, with commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=0, help="epochs of training before the step is timed")
    parser.add_argument("--epochs", type=int, help="of a round (default: as many as the encoder trains in one)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write everything here")
    arguments = parser.parse_args()
    for given, known in ((arguments.encoders, encoders.NAMES), (arguments.parts, ("step", "round"))):
        unknown = set(given.split(",")) - set(known)
        if unknown:
            parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    return arguments


def main() -> None:
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    facts = machine_facts()
    print(", ".join(f"{name} {value}" for name, value in facts.items()), flush=True)
    pair = load(arguments.case, arguments.seed_fraction)
    names, parts = arguments.encoders.split(","), arguments.parts.split(",")
    report: Result = {"machine": facts, "case": arguments.case, "threads": arguments.threads}
    if "step" in parts:
        timed = [name for name in names if name in LOSSES]
        report["step"] = {name: step(name, pair, arguments.rounds, arguments.warm_up) for name in timed}
        print("\n" + step_report(arguments.case, report["step"]), flush=True)
    if "round" in parts:
        report["round"] = {name: whole_round(name, pair, arguments.epochs) for name in names}
        print("\n" + round_report(arguments.case, report["round"]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
