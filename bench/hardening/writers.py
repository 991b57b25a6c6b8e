"""Everything that writes, in one table, so that kills and failing disks can be tried on all of it.

A writer can write content 0, 1, 2, … to a folder, each over the one before, and can say which content is there, whole.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import stea_fast as sf
from bench.paper import store
from stea_fast._backends import kernel_cache
from stea_fast._backends.nvrtc import Image
from stea_fast._util.name_table import NameTable
from stea_fast.formats.links import read_link_rows, write_link_rows
from stea_fast.formats.relations import write_relation_rows
from stea_fast.formats.result_rows import LinkRow, RelationRow
from stea_fast.formats.triples import FORMATS, Problems, TripleTable, read_triples, write_triples
from stea_fast.selftraining.checkpoint import Checkpoint

LINK_FILES = ("links.tsv", "links.csv.gz", "links.jsonl", "links.parquet", "links.arrow", "links.nt", "links.sssom.tsv")
RELATION_FILES = ("relations.tsv", "relations.parquet", "relations.nt")


@dataclass(frozen=True)
class Writer:
    """Something that writes.

    Attributes:
        name: of the writer; that of the file where there is one.
        write: writes content `number` of about `size` rows to a folder.
        read: the number of the content that is there; an error if it is not whole, None if nothing was ever written.
        keeps: whether every content stays and the next is added, instead of replacing it.
    """

    name: str
    write: Callable[[Path, int, int], None]
    read: Callable[[Path], int | None]
    keeps: bool = False


def writers() -> dict[str, Writer]:
    """All of them by name."""
    found = [Writer("a new graph", _save_new_graph, _number_of_graphs, keeps=True)]
    found += [Writer("graph", _save_graph, _graph), Writer("graph with values", _save_valued, _valued)]
    found += [Writer("checkpoint", _save_checkpoint, _checkpoint)]
    found += [Writer("compiled kernels", _keep_kernels, _kept_kernels)]
    found += [Writer("cells.jsonl", _append_cell, _last_cell, keeps=True), Writer("report.html", _report, _reported)]
    found += [Writer(name, _write_links(name), _read_links(name)) for name in LINK_FILES]
    found += [Writer(name, _write_relations(name), _read_relations(name)) for name in RELATION_FILES]
    converted = [f"graph.{kind}{'.zst' if kind == 'tsv' else ''}" for kind in FORMATS]
    found += [Writer(name, _convert(name), _converted(name)) for name in converted]
    return {writer.name: writer for writer in found}


def graph(number: int, size: int) -> sf.KG:
    """A graph that knows its number: it is in the name of its first entity, and in every other thing."""
    heads = np.arange(size)
    triples = np.stack([heads, heads % 3, (heads * 7 + number) % size], axis=1)
    return sf.KG(triples, size, 3, entity_names=[f"{number}:{entity}" for entity in range(size)])


def _number_in(kg: sf.KG) -> int:
    assert kg.entity_names is not None
    number = int(kg.entity_names[0].split(":")[0])
    assert kg == graph(number, kg.num_entities), "parts of two graphs"
    return number


def _save_graph(folder: Path, number: int, size: int) -> None:
    graph(number, size).save(folder / "graph")


def _graph(folder: Path) -> int | None:
    return _number_in(sf.KG.load(folder / "graph")) if (folder / "graph").exists() else None


def _values(number: int, size: int) -> sf.Attributes:
    statements = ((entity, f"attribute {number}", f"{number}:{entity}") for entity in range(size))
    return sf.Attributes.from_statements(statements, size)


def _save_valued(folder: Path, number: int, size: int) -> None:
    graph(number, size).with_attributes(_values(number, size)).save(folder / "graph")


def _valued(folder: Path) -> int | None:
    if not (folder / "graph").exists():
        return None
    kg = sf.KG.load(folder / "graph")
    number = _number_in(kg.with_attributes(None))
    assert kg.attributes == _values(number, kg.num_entities), "values of another graph"
    return number


def _save_new_graph(folder: Path, number: int, size: int) -> None:
    graph(number, size).save(folder / str(number))


def _number_of_graphs(folder: Path) -> int | None:
    numbers = sorted(int(path.name) for path in folder.glob("[0-9]*"))
    assert [_number_in(sf.KG.load(folder / str(number))) for number in numbers] == numbers
    return numbers[-1] if numbers else None


@functools.cache
def _pair() -> sf.Pair:
    return sf.synthetic_pair(60, seed=0)


@functools.cache
def _checkpoint_in(folder: Path) -> Checkpoint:
    return Checkpoint(folder / "run", _pair(), {})


def _save_checkpoint(folder: Path, number: int, size: int) -> None:
    state = {"weights": np.full((size, 16), number, dtype=np.float32), "number": np.array(number)}
    _checkpoint_in(folder).save(state, np.full((size, 2), number), [], {"seconds": {"train": float(number)}})


def _checkpoint(folder: Path) -> int | None:
    checkpoint = _checkpoint_in(folder)
    if not checkpoint.exists():
        return None
    saved = checkpoint.load()
    number = int(saved.encoder["number"])
    assert (saved.encoder["weights"] == number).all() and (saved.pairs == number).all()
    return number


def _kernels(number: int, size: int) -> Image:
    return Image(str(number).encode() + b"\0" * size, {"kernel": f"kernel_{number}"})


def _keep_kernels(folder: Path, number: int, size: int) -> None:
    kernel_cache.keep(folder / "kernels" / "sm_90.bin", _kernels(number, size))


def _kept_kernels(folder: Path) -> int | None:
    path = folder / "kernels" / "sm_90.bin"
    if not path.exists():
        return None
    image = kernel_cache.kept(path)
    assert image is not None, "damaged"
    number = int(image.code.rstrip(b"\0"))
    assert image == _kernels(number, image.code.count(b"\0")), "parts of two images"
    return number


def _append_cell(folder: Path, number: int, size: int) -> None:
    store.append(folder / store.CELLS, {"number": number, "hits": [number] * size})


def _last_cell(folder: Path) -> int | None:
    records = store.read(folder / store.CELLS)
    assert [record["number"] for record in records] == list(range(len(records)))
    assert all(set(record["hits"]) == {record["number"]} for record in records)
    return len(records) - 1 if records else None


@functools.cache
def _alignment() -> sf.Alignment:
    return sf.align(_pair(), rounds=1, calibration="none", progress=False)


def _report(folder: Path, number: int, size: int) -> None:
    named = dataclasses.replace(_pair(), name=f"pair{number}.")
    dataclasses.replace(_alignment(), pair=named).write_report(folder / "report.html")


def _reported(folder: Path) -> int | None:
    path = folder / "report.html"
    if not path.exists():
        return None
    page = path.read_text(encoding="utf-8")
    assert page.rstrip().endswith("</html>")
    return int(page.split("pair", 1)[1].split(".")[0])


def _write_links(name: str) -> Callable[[Path, int, int], None]:
    def write(folder: Path, number: int, size: int) -> None:
        rows = [LinkRow(f"http://a/{number}/{i}", f"http://b/{i}", 0.5, 1, "both", "link") for i in range(size)]
        write_link_rows(rows, folder / name, name="a b", comment=str(number))

    return write


def _read_links(name: str) -> Callable[[Path], int | None]:
    def read(folder: Path) -> int | None:
        if not (folder / name).exists():
            return None
        links = read_link_rows(folder / name, Problems(strict=True))
        numbers = {link.source.split("/")[3] for link in links}
        assert len(numbers) == 1 and [link.target for link in links] == [f"http://b/{i}" for i in range(len(links))]
        return int(numbers.pop())

    return read


def _write_relations(name: str) -> Callable[[Path, int, int], None]:
    def write(folder: Path, number: int, size: int) -> None:
        rows = [RelationRow(f"r{number}", f"s{i}", False, 0.75, 0.25) for i in range(size)]
        write_relation_rows(rows, folder / name)

    return write


def _read_relations(name: str) -> Callable[[Path], int | None]:
    """Relation alignments are only written; a file of them can be read as links, or as statements."""

    def read(folder: Path) -> int | None:
        if not (folder / name).exists():
            return None
        if name.endswith(".nt"):
            sources = {read_triples(folder / name).entities[0]}
        else:
            sources = {link.source for link in read_link_rows(folder / name, Problems(strict=True))}
        assert len(sources) == 1
        return int(sources.pop().removeprefix("r"))

    return read


def _convert(name: str) -> Callable[[Path, int, int], None]:
    def write(folder: Path, number: int, size: int) -> None:
        kg = graph(number, size)
        names = NameTable.pack(f"http://a/{number}/{entity}" for entity in range(size))
        table = TripleTable(kg.triples.astype(np.int64), names, NameTable.pack(f"http://r/r{r}" for r in range(3)))
        write_triples(table, folder / name)

    return write


def _converted(name: str) -> Callable[[Path], int | None]:
    def read(folder: Path) -> int | None:
        if not (folder / name).exists():
            return None
        table = read_triples(folder / name, strict=True)
        numbers = {entity.split("/")[3] for entity in table.entities}
        assert len(numbers) == 1 and len(table.triples) == len(table.entities)
        return int(numbers.pop())

    return read


def things_in(folder: Path, writer: Writer) -> list[str]:
    """The names of everything in a folder, without what changes from content to content."""
    names = (re.sub(r"\.[0-9]+\.npy", ".npy", str(path.relative_to(folder))) for path in folder.rglob("*"))
    return sorted({re.sub("[0-9]+", "#", name) for name in names} if writer.keeps else names)
