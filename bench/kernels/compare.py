"""Everything the bars name, measured in one run and printed as Markdown tables.

python -m bench.kernels.compare [--case dbp15k_zh_en] [--sample 150] [--rounds 15]
                                [--parts speed,growth,hub,memory,import] [--json out.json]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.kernels import import_time, memory, parts
from bench.lib.inputs import MissingDataError
from bench.lib.measure import duration, machine_facts, markdown, times

Result = dict[str, Any]
Measure = Callable[[], Result]
Describe = Callable[[Result], str]
MIN_IMPORT_RUNS = 15
BAR_CASE = "dbp15k_zh_en"
# What the project asks for: (comparison, limit). The first three are meant for BAR_CASE only.
BARS = {
    "per-pair": (">=", 8_000),
    "numba": (">=", 1.5),
    "relations": ("<=", 1.0),
    "growth": ("<=", 2.0),
    "memory": ("<=", 500),
    "import": ("<=", 2.0),
}


def _against(value: float, bar: str) -> str:
    comparison, limit = BARS[bar]
    met = value >= limit if comparison == ">=" else value <= limit
    sign = "≥" if comparison == ">=" else "≤"
    return f"{sign} {limit:,}: {'met' if met else 'MISSED'}"


def speed_report(result: Result) -> str:
    """Seconds of every contender, then the ratios."""
    estimate = result["per_pair"]
    sampled = sum(estimate["sampled_entities"].values())
    rows = [
        [
            f"per-pair way, 1 thread, extrapolated from {sampled} entities",
            duration(estimate["seconds"]),
            f"± {duration(estimate['standard_error'])} standard error",
        ]
    ]
    for label, timing in result["seconds"].items():
        spread = f"{duration(timing['lower'])} – {duration(timing['upper'])}"
        rows.append([label, duration(timing["median"]), spread])
    title = f"{result['case']}, K = {result['k']}, {result['candidates']} candidates, both directions"
    table = markdown([title, "median", "quartiles"], rows)
    return table + "\n\n" + markdown(["ratio", "value", "bar"], _speed_ratios(result))


def _speed_ratios(result: Result) -> list[list[str]]:
    seconds = {label: timing["median"] for label, timing in result["seconds"].items()}
    seconds["per-pair"] = result["per_pair"]["seconds"]
    n = result["threads"]
    native, with_table = f"native, {n} threads", f"native, {n} threads, relation table included"
    wanted = [
        ("per-pair way / native", "per-pair", native, "per-pair"),
        ("per-pair way / native with relation table", "per-pair", with_table, "per-pair"),
        ("Numba / native", f"numba, {n} threads", native, "numba"),
        ("relation alignment / evidence", f"relation alignment, native, {n} threads", native, "relations"),
        (f"native, 1 / {n} threads", "native, 1 thread", native, None),
        (f"Numba, 1 / {n} threads", "numba, 1 thread", f"numba, {n} threads", None),
        ("tier baseline / avx2", "native, 1 thread, tier baseline", "native, 1 thread, tier avx2", None),
    ]
    rows = []
    for label, above, below, bar in wanted:
        if above in seconds and below in seconds:
            ratio = seconds[above] / seconds[below]
            verdict = _against(ratio, bar) if bar and result["case"] == BAR_CASE else ""
            rows.append([label, times(ratio), verdict])
    return rows


def growth_report(result: Result) -> str:
    """Time per (edge × K) of both pairs."""
    n = result["threads"]
    header = [f"growth, {result['candidates']} candidates", f"{n} threads", "edges", "candidates' edges"]
    header += [f"ns per (edge × K), {n} threads", "1 thread", "ns per candidate's edge"]
    rows = [
        [
            name,
            duration(row["seconds"]["median"]),
            f"{row['edges']:,}",
            f"{row['candidate_edges']:,}",
            f"{row['ns_per_edge_k']:.3f}",
            f"{row['ns_per_edge_k_1_thread']:.3f}",
            f"{row['ns_per_candidate_edge']:.3f}",
        ]
        for name, row in result["cases"].items()
    ]
    small, large = result["cases"].values()
    ratio = large["ns_per_edge_k"] / small["ns_per_edge_k"]
    verdict = f"Growth of the time per (edge × K): {times(ratio)} ({_against(ratio, 'growth')})"
    return markdown(header, rows) + "\n\n" + verdict


def hub_report(result: Result) -> str:
    """How well the threads share a star's work."""
    n = result["threads"]
    header = [f"hub of degree {result['degree']:,}", "1 thread", f"{n} threads"]
    header += ["speed-up", "possible", "hub row"]
    rows = []
    for label, row in result["graphs"].items():
        one, several = (row["seconds"][f"{count} threads"]["median"] for count in (1, n))
        rows.append(
            [
                label,
                duration(one),
                duration(several),
                times(row["speed_up"]),
                times(row["possible_speed_up"]),
                f"{row['hub_share']:.0%}",
            ]
        )
    note = "Possible: a row is never divided, so the hub's share of the time bounds the speed-up."
    return markdown(header, rows) + "\n\n" + note


def memory_report(result: Result) -> str:
    added = result["added_mb"]
    header = [f"memory, refine on {result['case']}", "before", "highest", "added", "bar"]
    row = [f"{value:,.0f} MB" for value in (result["before_mb"], result["peak_mb"], added)]
    return markdown(header, [["default options", *row, _against(added, "memory")]])


def import_report(result: Result) -> str:
    seconds = {label: timing["median"] for label, timing in result["seconds"].items()}
    base = seconds["import numpy"]
    rows = [
        [
            label,
            duration(value),
            times(value / base),
            _against(value / base, "import") if label == "import stea_fast" else "",
        ]
        for label, value in seconds.items()
    ]
    return markdown(["statement in a fresh process", "median", "of import numpy", "bar"], rows)


def _measurements(arguments: argparse.Namespace) -> dict[str, tuple[Measure, Describe]]:
    rounds, threads = arguments.rounds, arguments.threads
    return {
        "speed": (lambda: parts.speed(arguments.case, rounds, arguments.sample, threads), speed_report),
        "growth": (lambda: parts.growth(rounds, threads), growth_report),
        "hub": (lambda: parts.hub(rounds, threads), hub_report),
        "memory": (lambda: memory.measure(arguments.memory_case), memory_report),
        "import": (lambda: import_time.measure(max(rounds, MIN_IMPORT_RUNS)), import_report),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what the bars name, in one run.")
    parser.add_argument("--case", default=BAR_CASE, help="the case of the speed part")
    parser.add_argument("--memory-case", default=memory.DEFAULT_CASE, help="the case of the memory part")
    parser.add_argument("--sample", type=int, default=150, help="entities per direction for the per-pair way")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--parts", default="speed,growth,hub,memory,import", help="some of them, with commas")
    parser.add_argument("--json", type=Path, help="also write everything here")
    arguments = parser.parse_args()
    unknown = set(arguments.parts.split(",")) - set(_measurements(arguments))
    if unknown:
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    if arguments.rounds < 1 or arguments.threads < 2 or arguments.sample < 2 * arguments.rounds:
        parser.error("rounds must be at least 1, threads 2, and sample twice the rounds")
    return arguments


def main() -> None:
    arguments = _arguments()
    facts = machine_facts()
    print(", ".join(f"{name} {value}" for name, value in facts.items()), flush=True)
    report: Result = {"machine": facts, "rounds": arguments.rounds, "parts": {}}
    for name, (measure, describe) in _measurements(arguments).items():
        if name not in arguments.parts.split(","):
            continue
        try:
            report["parts"][name] = measure()
        except MissingDataError as error:
            print(f"\n{name}: left out, {error}", flush=True)
            continue
        print("\n" + describe(report["parts"][name]), flush=True)
        if arguments.json:
            text = json.dumps(report, indent=2, ensure_ascii=False)
            arguments.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
