"""`stea-fast convert`: a graph in another format."""

from __future__ import annotations

import argparse
from pathlib import Path

from stea_fast._util.name_table import NameTable
from stea_fast.alignment.link_table import labels
from stea_fast.cli.console import Console, UsageError
from stea_fast.cli.exit_codes import OK
from stea_fast.cli.inputs import add_spreadsheet_option
from stea_fast.cli.outputs import check_files
from stea_fast.data.dataset_folders import load_pair
from stea_fast.formats.triples import FORMATS, LITERALS, TripleTable, format_of, read_triples, write_triples

HELP = "convert a graph to another format; every triple, every value and every id is kept"
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
    parser.add_argument(
        "--literals", choices=LITERALS, default="keep",
        help="of RDF: keep all (default), those that are values, or none",
    )  # fmt: skip
    parser.add_argument("--strict", action="store_true", help="stop at the first malformed line")
    add_spreadsheet_option(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Convert."""
    format_of(arguments.output, arguments.target_format)
    check_files({"the output": arguments.output}, [arguments.input])
    if arguments.input.is_dir():
        table = _from_folder(arguments)
    else:
        table = read_triples(
            arguments.input, format=arguments.source_format, literals=arguments.literals, strict=arguments.strict
        )
    console.problems(table.problems, f"malformed lines of {arguments.input}")
    write_triples(table, arguments.output, format=arguments.target_format, spreadsheet_safe=arguments.spreadsheet_safe)
    values = {} if table.attributes is None else {"values": len(table.attributes.statements)}
    counts = {
        "triples": len(table.triples),
        "entities": len(table.entities),
        "relations": len(table.relations),
    } | values
    text = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    console.result({**counts, "output": str(arguments.output)}, f"{arguments.output}: {text}")
    return OK


def _from_folder(arguments: argparse.Namespace) -> TripleTable:
    if arguments.graph is None:
        raise UsageError(
            f"{arguments.input} is a dataset folder with two graphs: choose one with --graph 1 or --graph 2"
        )
    pair = load_pair(arguments.input, 1.0, permutation_seed=None)
    kg = (pair.kg1, pair.kg2)[arguments.graph - 1]
    label = labels(pair)[arguments.graph - 1]
    entities = NameTable.pack(label(entity) for entity in range(kg.num_entities))
    relations = NameTable.pack(kg.relation_label(relation) for relation in range(kg.num_relations))
    attributes = None if kg.attributes is None or arguments.literals == "drop" else kg.attributes.to_table()
    return TripleTable(kg.triples, entities, relations, attributes=attributes)
