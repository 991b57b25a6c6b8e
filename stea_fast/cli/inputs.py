"""Options and steps that several commands share: graphs and seeds by name, and where results go."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from stea_fast.alignment.api import Alignment
from stea_fast.alignment.link_table import STATUSES
from stea_fast.cli.console import Console, UsageError
from stea_fast.cli.outputs import check_checkpoint, check_files
from stea_fast.data.files import graph_of, known_links, name_index
from stea_fast.data.graph import KG
from stea_fast.data.labels import Labels
from stea_fast.data.name_files import read_name_file
from stea_fast.data.pair import Pair
from stea_fast.data.value_files import with_values_of
from stea_fast.formats.feature_files import read_features
from stea_fast.formats.links import read_link_rows
from stea_fast.formats.result_rows import LINK_FORMATS, link_format_of
from stea_fast.formats.triples import FORMATS, LITERALS, Problems, read_triples

USE = ("auto", "always", "never")


def add_graph_options(parser: argparse.ArgumentParser, literals: str = "values") -> None:
    """How graphs are read; `literals` is the default of --literals."""
    group = parser.add_argument_group("reading")
    group.add_argument("--format1", choices=FORMATS, help="format of the first graph (default: by its suffix)")
    group.add_argument("--format2", choices=FORMATS, help="format of the second graph")
    group.add_argument(
        "--literals", choices=LITERALS, default=literals,
        help="literals as values of their entities, left out, or kept as entities (default: %(default)s)",
    )  # fmt: skip
    group.add_argument("--strict", action="store_true", help="stop at the first malformed line or unknown entity")


def add_value_options(parser: argparse.ArgumentParser) -> None:
    """Names and values that are not in the files of the graphs."""
    group = parser.add_argument_group("names and values")
    for side, which in ((1, "first"), (2, "second")):
        group.add_argument(
            f"--names{side}", type=Path, metavar="FILE", help=f"names of the {which} graph: id, tab, name in every line"
        )
    for side, which in ((1, "first"), (2, "second")):
        group.add_argument(
            f"--values{side}", type=Path, metavar="FILE",
            help=f"values of the {which} graph: a table with a row for every entity, or of entity, attribute and value",
        )  # fmt: skip
    for side, which in ((1, "first"), (2, "second")):
        group.add_argument(
            f"--features{side}", type=Path, metavar="FILE",
            help=f"vectors of the {which} graph's entities: .npy or .safetensors with ids in FILE.ids, or Parquet",
        )  # fmt: skip
    for kind in ("names", "values"):
        group.add_argument(
            f"--use-{kind}", choices=USE, default="auto", help="as evidence (default: auto, where there are no seeds)"
        )
    group.add_argument("--no-structure", action="store_true", help="decide by names, values and features alone")


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Where results go, and what counts as a link."""
    group = parser.add_argument_group("results")
    group.add_argument("--out", type=Path, required=True, metavar="FILE", help="links; the suffix gives the format")
    group.add_argument("--format", choices=LINK_FORMATS, help="format of --out and --relations, if not by suffix")
    group.add_argument("--relations", type=Path, metavar="FILE", help="also write the relation alignment")
    group.add_argument("--report", type=Path, metavar="FILE.html", help="also write a page to look at")
    add_spreadsheet_option(group)
    group.add_argument("--min-prob", type=float, default=0.5, help="least probability of a link (default: %(default)s)")
    group.add_argument("--precision", type=float, help="share of the links to be right, instead of --min-prob")
    group.add_argument("--one-to-one", action="store_true", help="link no target twice (maximum-weight matching)")


def add_spreadsheet_option(parser: argparse._ActionsContainer) -> None:
    """For names that a spreadsheet would execute."""
    parser.add_argument(
        "--spreadsheet-safe", action="store_true", help="in TSV and CSV, spell names that a spreadsheet would execute"
    )


def check_outputs(arguments: argparse.Namespace, read: Iterable[Path | None]) -> None:
    """Refuse what cannot or must not be written before the work begins; `read` are all inputs of the command."""
    for name, value in (("--min-prob", arguments.min_prob), ("--precision", arguments.precision)):
        if value is not None and not 0.0 <= value <= 1.0:
            raise UsageError(f"{name} must be between 0 and 1, got {value}")
    for path in (arguments.out, arguments.relations):
        if path is not None:
            link_format_of(path, arguments.format)
    written = {f"--{name}": getattr(arguments, name) for name in ("out", "relations", "report")}
    check_files(written, read)
    check_checkpoint(getattr(arguments, "checkpoint", None), written)


def read_graphs(arguments: argparse.Namespace, console: Console) -> tuple[KG, KG]:
    """Both graphs, each numbered in a random order of its own (see `read_pair`)."""
    if arguments.literals == "keep":
        console.note("literals are entities like all others: that two of them are equal is no evidence")
    return tuple(  # type: ignore[return-value]
        _read_graph(path, kind, side, arguments, console)
        for side, (path, kind) in enumerate(
            zip(arguments.graphs, (arguments.format1, arguments.format2), strict=True), start=1
        )
    )


def _read_graph(path: Path, kind: str | None, side: int, arguments: argparse.Namespace, console: Console) -> KG:
    table = read_triples(path, format=kind, literals=arguments.literals, strict=arguments.strict)
    console.problems(table.problems, f"malformed lines of {path}")
    kg = graph_of(table, [getattr(arguments, "seed", 0), side])
    values: Path | None = getattr(arguments, f"values{side}", None)
    if values is not None:
        problems = Problems(arguments.strict)
        kg = with_values_of(kg, values, problems)
        console.problems(problems, f"rows of {values}")
    console.note(f"{path}: {kg}")
    return kg


def read_names(
    arguments: argparse.Namespace, graphs: tuple[KG, KG], console: Console
) -> tuple[Labels | None, Labels | None]:
    """The names of --names1 and --names2, None where there is no such file."""

    def read(path: Path | None, kg: KG) -> Labels | None:
        if path is None:
            return None
        problems = Problems(arguments.strict)
        labels = read_name_file(path, name_index(kg), kg.num_entities, problems)
        console.problems(problems, f"lines of {path}")
        return labels

    return read(arguments.names1, graphs[0]), read(arguments.names2, graphs[1])


def read_feature_files(
    arguments: argparse.Namespace, pair: Pair, console: Console
) -> tuple[np.ndarray, np.ndarray] | None:
    """The vectors of --features1 and --features2; None where they are not given."""
    paths = (arguments.features1, arguments.features2)
    if paths == (None, None):
        return None
    if None in paths:
        raise UsageError("--features1 and --features2 are vectors of one model: give both")
    found = []
    for path, kg, ids in zip(paths, (pair.kg1, pair.kg2), (pair.ids1, pair.ids2), strict=True):
        index = {str(ident): entity for entity, ident in enumerate(() if ids is None else ids.tolist())}
        index |= {} if kg.entity_names is None else name_index(kg)
        problems = Problems(arguments.strict)
        found.append(read_features(path, index, kg.num_entities, problems))
        console.problems(problems, f"rows of {path}")
    return found[0], found[1]


def read_known_links(path: Path, graphs: tuple[KG, KG], arguments: argparse.Namespace, console: Console) -> np.ndarray:
    """int64 [m, 2]: links of a file in the ids of the graphs; at least one."""
    problems = Problems(arguments.strict)
    rows = read_link_rows(path, problems)
    links = known_links(rows, path, *graphs, problems)
    if not len(links):
        first = f"; the first problem is {problems.first[0]}" if problems.first else ""
        raise ValueError(f"{path} holds no link between entities of the two graphs{first}")
    console.problems(problems, f"of {len(rows):,} links of {path}")
    return links


def write_outputs(alignment: Alignment, arguments: argparse.Namespace) -> None:
    """All files that were asked for, the links last: where they are, all is there."""
    alignment.settings["command"] = arguments.command_line
    safe = arguments.spreadsheet_safe
    if arguments.report is not None:
        alignment.write_report(arguments.report)
    if arguments.relations is not None:
        alignment.write_relations(arguments.relations, format=arguments.format, spreadsheet_safe=safe)
    alignment.write_links(arguments.out, format=arguments.format, spreadsheet_safe=safe)


def summary(alignment: Alignment, arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Counts and files, as an object and as text."""
    links = alignment.links
    counts = {status: links.count(status) for status in STATUSES}
    files = {name: str(getattr(arguments, name)) for name in ("out", "relations", "report") if getattr(arguments, name)}
    precision, low, high = alignment.expected_precision
    lines = [
        f"{counts['link']:,} links, {counts['seed']:,} seeds, {counts['uncertain']:,} uncertain, "
        f"{counts['no_counterpart']:,} entities without counterpart",
        *([f"expected precision of the links: {precision:.3f} ({low:.3f} to {high:.3f})"] if counts["link"] else []),
        f"probabilities: {alignment.calibrator.note}",
        *(f"{name:10}{path}" for name, path in files.items()),
    ]
    calibrator = alignment.calibrator
    facts = {"counts": counts, "confidence": calibrator.note, "calibration": calibrator.basis, "files": files}
    return {**facts, "expected_precision": [precision, low, high]}, "\n".join(lines)
