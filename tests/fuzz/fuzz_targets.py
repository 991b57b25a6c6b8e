"""Every reader of the package as something that can be given files: how they look when they are right, and the call.

A reader that has options takes them from the content of the file, so that an input always does the same. What was read
is used as well: a graph that is loaded must be safe for the kernels.
"""

from __future__ import annotations

import io
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from fuzz_features import feature_seeds, use_features
from fuzz_mutations import Files

from stea_fast._util.npy import read_npy
from stea_fast.data.attributes import Attributes
from stea_fast.data.dataset_folders import load_pair
from stea_fast.data.files import graph_of, known_links, make_pair
from stea_fast.data.graph import KG
from stea_fast.data.name_files import read_name_file
from stea_fast.data.naming import labels_of
from stea_fast.data.value_files import with_values_of
from stea_fast.formats.links import read_link_rows, write_link_rows
from stea_fast.formats.result_rows import LINK_FORMATS, LinkRow
from stea_fast.formats.tab_separated import read_lines
from stea_fast.formats.tabular import write_arrow
from stea_fast.formats.triple_table import Problems, TableBuilder
from stea_fast.formats.triples import FORMATS, LITERALS, TripleTable, read_triples, write_triples
from stea_fast.formats.value_pool import Value
from stea_fast.refinement.beliefs import from_pairs
from stea_fast.refinement.relations import align_relations
from stea_fast.selftraining.checkpoint import Checkpoint

TRIPLES = (
    ("http://e.org/Berlin", "http://e.org/capitalOf", "http://e.org/Germany"),
    ("http://e.org/Germany", "http://e.org/in", "http://e.org/Europe"),
    ("http://zh.e.org/柏林", "http://e.org/in", "_:b0"),
    ("_:b0", "http://e.org/label", '"Berlin, \\"Mitte\\""@de'),
    ("http://e.org/Berlin", "http://e.org/population", '"3644826"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    ("Köln", "liegt in", "a name with, commas\tand \"quotes\""),
)  # fmt: skip
LINKS = (
    LinkRow("http://e.org/Berlin", "http://zh.e.org/柏林", 0.98, 1, "both", "link"),
    LinkRow("http://e.org/Germany", "http://e.org/Germany", 1.0, 1, "both", "seed"),
    LinkRow("http://e.org/Europe", None, None, None, None, "no_counterpart"),
    LinkRow("Köln", "0", 0.4, 2, "forward", "uncertain"),
)
GRAPH = KG(
    [[0, 0, 1], [1, 1, 2], [2, 0, 3], [3, 2, 0], [3, 0, 3]], 5, 3,
    entity_names=["http://e.org/Berlin", "http://e.org/Germany", "Köln", "http://zh.e.org/柏林", ""],
    relation_names=["in", "capital of", "位于"],
)  # fmt: skip
VALUED_GRAPH = GRAPH.with_attributes(
    Attributes.from_statements(
        [(0, "name", Value("Berlin", "", "de")), (0, "born", 1237), (2, "name", "Köln"), (4, "名字", "柏林 🙂")], 5
    )
)
TURTLE = (
    b"@prefix e: <http://e.org/> .\n@base <http://b.org/> .\n"
    b'e:a a e:Type ; e:p <x>, _:b, [ e:q "long"@en ], (1 2.5 true) . # comment\n'
    b"e:a e:r '''a 'long'\ntext\\u00e9''' , \"\"\"x\"\"\"^^e:t .\n"
)
ONTOLOGY = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE rdf:RDF [<!ENTITY e "http://e.org/">]>\n'
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="&e;" xml:base="http://b.org/">\n'
    b'<e:City rdf:about="&e;Berlin"><e:in rdf:resource="#Germany"/><e:name xml:lang="de">Berlin &amp; mehr</e:name>\n'
    b'<e:parts rdf:parseType="Collection"><rdf:Description rdf:nodeID="b"/></e:parts></e:City></rdf:RDF>\n'
)


@dataclass(frozen=True)
class Target:
    """A reader: `make_seeds` gives files that it can read, and `read` reads those of a folder."""

    name: str
    make_seeds: Callable[[], list[Files]]
    read: Callable[[Path], object]

    @property
    def folder(self) -> str:
        """The name of the folder of its regressions."""
        return self.name.replace(" ", "_")

    def seeds(self) -> list[Files]:
        """The files to start from, made once."""
        return _seeds(self)


@cache
def _seeds(target: Target) -> list[Files]:
    return target.make_seeds()


def _choice(path: Path, options: int) -> int:
    """A choice that depends on the content of a file alone."""
    return zlib.crc32(path.read_bytes()) % options


# --- graphs ---


def _table() -> TripleTable:
    builder = TableBuilder(Problems())
    for triple in TRIPLES:
        builder.add(*(name.encode() for name in triple))
    return builder.build()


def _written(name: str, write: Callable[[Path], None]) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / name)
        return {path.name: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def _triple_seeds(name: str) -> list[Files]:
    seeds = [_written(name, lambda path: write_triples(_table(), path))]
    if name == "a.ttl":
        seeds.append({name: TURTLE})
    if name == "a.rdf":
        seeds.append({name: ONTOLOGY})
    if name in ("a.parquet", "a.arrow"):
        seeds += [{name: content} for content in _typed_tables(name)]
    return seeds


def _typed_tables(name: str) -> list[bytes]:
    """Dictionaries, integers, missing values and nested columns, compressed or not, in several batches."""
    import pyarrow
    import pyarrow.feather
    import pyarrow.parquet

    words = pyarrow.array(["a", "b", "a", "c"])
    tables = [
        pyarrow.table({"h": words.dictionary_encode(), "r": words, "t": pyarrow.array([1, 2, 3, 4])}),
        pyarrow.table({"h": words, "r": words, "t": words, "more": [[1], [], [2, 3], None], "x": [None] * 4}),
    ]
    contents = []
    for table in tables:
        for compression in ("uncompressed", "zstd"):
            stream = io.BytesIO()
            if name == "a.parquet":
                kind = "none" if compression == "uncompressed" else compression
                pyarrow.parquet.write_table(table, stream, compression=kind, row_group_size=2)
            else:
                pyarrow.feather.write_feather(table, stream, compression=compression, chunksize=2)
            contents.append(stream.getvalue())
    return contents


def _read_graph(path: Path) -> None:
    option = _choice(path, 6)
    table = read_triples(path, literals=LITERALS[option % 3], strict=option == 5)
    if option in (0, 3):
        kg = graph_of(table, permutation_seed=0)
        assert len(list(kg.entity_names or ())) == kg.num_entities
        assert len(labels_of(kg).of(0)) >= 0


def _graph_target(name: str) -> Target:
    return Target(f"graph {name}", lambda: _triple_seeds(name), lambda folder: _read_graph(folder / name))


# --- links ---


def _read_links(path: Path) -> None:
    problems = Problems(strict=_choice(path, 4) == 3)
    rows = read_link_rows(path, problems)
    known_links(rows, path, GRAPH, GRAPH, problems)
    assert all((row.source + row.target).encode() for row in rows)


def _link_target(suffix: str) -> Target:
    name = f"links.{suffix}"

    def seeds() -> list[Files]:
        found = [_written(name, lambda path: write_link_rows(LINKS, path, name="x", comment="a: comment"))]
        if suffix in ("tsv", "csv"):
            found.append({name: "source\ttarget\n1\t2\n".replace("\t", "\t" if suffix == "tsv" else ",").encode()})
        return found

    return Target(name, seeds, lambda folder: _read_links(folder / name))


# --- folders ---

DBP15K = {
    "triples_1": b"0\t0\t1\n1\t1\t2\n", "triples_2": b"10\t0\t11\n11\t1\t12\n", "ref_ent_ids": b"0\t10\n1\t11\n",
    "sup_ent_ids": b"2\t12\n", "ent_ids_1": "0\tBerlin\n1\tKöln\n2\tx\n".encode(),
    "ent_ids_2": b"10\ta\n11\tb\n12\tc\n", "rel_ids_1": b"0\tin\n1\tof\n",
    "attr_triples_1": b'0\tage\t5\n1\tn\t"x"@de\n', "names_2": b"10\tBerlin\n12\tK\xc3\xb6ln\n",
}  # fmt: skip
OPENEA = {
    "rel_triples_1": "Berlin\tin\tGermany\nKöln\tin\tGermany\n".encode(), "rel_triples_2": b"b\tp\tg\nk\tp\tg\n",
    "ent_links": "Berlin\tb\nKöln\tk\nGermany\tg\n".encode(), "attr_triples_2": b"b\tname\tBerlin\tMitte\nk\tage\t7\n",
}  # fmt: skip


def _read_dataset(folder: Path) -> None:
    first = folder / ("ref_ent_ids" if (folder / "ref_ent_ids").exists() else "ent_links")
    fraction = None if first.exists() and _choice(first, 3) == 0 else 0.5
    pair = load_pair(folder, fraction, names=(None, "names_2" if (folder / "names_2").exists() else None))
    assert len(pair.train) + len(pair.test) + len(pair.valid) <= len(pair.links)


def _read_saved(folder: Path) -> None:
    """Whatever is loaded goes through the kernels: a graph that harms them must have been refused."""
    kg = KG.load(folder, mmap=_choice(folder / "edges.npy", 2) == 1 if (folder / "edges.npy").exists() else False)
    if kg.attributes is not None:
        assert sum(len(kg.attributes.of(entity)) for entity in range(kg.num_entities)) == len(kg.attributes)
        assert len(labels_of(kg)) <= len(kg.attributes) + kg.num_entities
    names = [*(kg.entity_names or ()), *(kg.relation_names or ())]
    assert all(isinstance(name, str) for name in names)
    every = np.arange(kg.num_entities)
    beliefs = from_pairs(every, every[::-1], np.full(kg.num_entities, 0.5, np.float32), kg.num_entities)
    align_relations(kg, kg, beliefs, beliefs, n_threads=1)
    assert len(kg.triples) == kg.num_triples


# --- values and names ---

ENTITY_TABLE = {
    "id": ["http://e.org/Berlin", "Köln", "nobody"], "name": ["Berlin", '"Köln"@de', None], "size": [1.5, None, 2.0],
}  # fmt: skip


def _value_seeds(name: str) -> list[Files]:
    fmt = name.split(".")[1]
    if fmt in ("parquet", "arrow"):

        def write(path: Path) -> None:
            with path.open("wb") as stream:
                write_arrow(stream, fmt, ENTITY_TABLE)  # type: ignore[arg-type]

        return [_written(name, write)]
    tables = ("id\tname\tsize\nKöln\tKöln am Rhein\t5\n\t\t\n", 'Köln\tname\tx\nhttp://e.org/Germany\tname\t"y"\n')
    if fmt == "csv":
        tables = tuple(table.replace('"y"', '"""y"""').replace("\t", ",") for table in tables)
    return [{name: table.encode()} for table in tables]


def _read_values(path: Path) -> None:
    kg = with_values_of(GRAPH, path, Problems(strict=_choice(path, 4) == 3))
    assert kg.attributes is not None and len(list(kg.attributes.values)) == len(kg.attributes.values)


def _read_names(path: Path) -> None:
    index = {name: entity for entity, name in enumerate(GRAPH.entity_names or ())}
    labels = read_name_file(path, index, GRAPH.num_entities, Problems(strict=_choice(path, 4) == 3))
    assert len(list(labels.text)) == len(labels)


def _read_features(path: Path) -> None:
    use_features(path, GRAPH, strict=_choice(path, 4) == 3)


@cache
def _pair_of_graphs() -> object:
    return make_pair(GRAPH, GRAPH, [[0, 0]])


def _checkpoint(folder: Path) -> Checkpoint:
    return Checkpoint(folder, _pair_of_graphs(), {"rounds": 2})  # type: ignore[arg-type]


def _save_checkpoint(path: Path) -> None:
    encoder = {"emb": np.eye(3, dtype=np.float32), "step": np.array([4])}
    _checkpoint(path.parent).save(encoder, np.array([[0, 1], [2, 3]]), [], {"test": {"hits@1": 0.5}})


# --- arrays ---


def _arrays() -> list[Files]:
    arrays = (
        np.arange(12, dtype=np.float32).reshape(4, 3),
        np.asfortranarray(np.eye(3)),
        np.arange(5),
        np.zeros((0, 3)),
    )
    return [_written("a.npy", lambda path, array=array: np.save(path, array)) for array in arrays]  # type: ignore[misc]


def _read_array(path: Path) -> None:
    array = read_npy(path, mmap=_choice(path, 2) == 1)
    assert array.sum() is not None


def _read_in(read: Callable[[Path], None], name: str, folder: Path) -> None:
    read(folder / name)


TARGETS = {
    target.name: target
    for target in (
        *(_graph_target(f"a.{kind}{packed}") for kind in FORMATS for packed in ("", ".gz", ".zst")),
        *(_link_target(kind if kind != "sssom" else "sssom.tsv") for kind in LINK_FORMATS),
        Target("dataset DBP15K", lambda: [DBP15K], _read_dataset),
        Target("dataset OpenEA", lambda: [OPENEA], _read_dataset),
        Target("saved graph", lambda: [_written("graph", kg.save) for kg in (GRAPH, VALUED_GRAPH)], _read_saved),
        *(
            Target(f"values v.{kind}", partial(_value_seeds, f"v.{kind}"), partial(_read_in, _read_values, f"v.{kind}"))
            for kind in ("tsv", "csv", "parquet", "arrow")
        ),
        *(
            Target(
                f"features f.{kind}",
                partial(feature_seeds, f"f.{kind}"),
                partial(_read_in, _read_features, f"f.{kind}"),
            )
            for kind in ("npy", "safetensors", "parquet", "arrow")
        ),
        Target(
            "entity names", lambda: [{"n.tsv": "Köln\tCologne\n".encode()}], partial(_read_in, _read_names, "n.tsv")
        ),
        Target(
            "checkpoint",
            lambda: [_written("checkpoint.safetensors", _save_checkpoint)],
            lambda folder: _checkpoint(folder).load(),
        ),
        Target("array", _arrays, lambda folder: _read_array(folder / "a.npy")),
        Target("names", lambda: [{"a.txt": "Berlin\nKöln\n".encode()}], lambda folder: read_lines(folder / "a.txt")),
    )
}


def saved_inputs(folder: Path) -> Iterator[tuple[Target, str, Files]]:
    """The inputs that lie in a folder for every reader: the reader, what the input is called, and its files."""
    for target in TARGETS.values():
        for case in sorted((folder / target.folder).glob("*")):
            yield target, case.name, {path.name: path.read_bytes() for path in case.iterdir()}
