"""`stea-fast convert`: a graph in another format."""

from __future__ import annotations

import argparse
from pathlib import Path

from stea_fast._util.atomic import check_writable
from stea_fast.alignment.api import labels
from stea_fast.cli.console import Console, UsageError
from stea_fast.cli.exit_codes import OK
from stea_fast.data.dataset_folders import load_pair
from stea_fast.formats.triples import FORMATS, LITERALS, TripleTable, format_of, read_triples, write_triples
from stea_fast.name_table import NameTable

HELP = "convert a graph to another format; every triple and every id is kept"
EXAMPLES = """examples:
  stea-fast convert a.ttl a.parquet
  stea-fast convert a.nt.gz a.tsv --literals drop
  stea-fast convert DBP15K/zh_en zh.nt --graph 1"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("input", type=Path, help="a file of triples, or a dataset folder")
    parser.add_argument("output", type=Path, help="the suffix gives the format; .gz and .zst compress")
    parser.add_argument("--from", dest="source_format", choices=FORMATS, help="format of the input, if not by suffix")
    parser.add_argument("--to", dest="target_format", choices=FORMATS, help="format of the output, if not by suffix")
    parser.add_argument("--graph", type=int, choices=(1, 2), help="which graph of a dataset folder")
    parser.add_argument("--literals", choices=LITERALS, default="keep", help="of RDF: keep (default) or leave out")
    parser.add_argument("--strict", action="store_true", help="stop at the first malformed line")


def run(given: argparse.Namespace, console: Console) -> int:
    """Convert."""
    format_of(given.output, given.target_format)
    check_writable(given.output)
    if given.input.is_dir():
        table = _from_folder(given)
    else:
        table = read_triples(given.input, format=given.source_format, literals=given.literals, strict=given.strict)
    console.problems(table.problems, f"malformed lines of {given.input}")
    write_triples(table, given.output, format=given.target_format)
    counts = {"triples": len(table.triples), "entities": len(table.entities), "relations": len(table.relations)}
    text = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    console.result({**counts, "output": str(given.output)}, f"{given.output}: {text}")
    return OK


def _from_folder(given: argparse.Namespace) -> TripleTable:
    if given.graph is None:
        raise UsageError(f"{given.input} is a dataset folder with two graphs: choose one with --graph 1 or --graph 2")
    pair = load_pair(given.input, 1.0, permutation_seed=None)
    kg = (pair.kg1, pair.kg2)[given.graph - 1]
    label = labels(pair)[given.graph - 1]
    entities = NameTable.pack(label(entity) for entity in range(kg.num_entities))
    relations = NameTable.pack(kg.relation_label(relation) for relation in range(kg.num_relations))
    return TripleTable(kg.triples, entities, relations)
