"""Saving a graph to a folder, so that a kill or a power cut at any moment leaves the old graph or the new one.

A new folder is filled aside and renamed. Over an older graph, the arrays are first written beside its own, under names
of the next generation; then the header is replaced, which is one step; then the older arrays are removed. What a killed
process left is what the header does not name, and the next save removes it.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from stea_fast._util import asides, atomic, disk, locks
from stea_fast._util.checksums import Checksum
from stea_fast.data.graph_store import (
    FORMAT,
    FORMAT_VERSION,
    HEADER,
    PARTS,
    VERSION_WITH_VALUES,
    StoredGraph,
    file_name,
    read_header,
)

_ARRAY_FILE = re.compile(f"(?:{'|'.join(map(re.escape, PARTS))})" + r"(?:\.[0-9]+)?\.npy")


def save(graph: StoredGraph, path: str | os.PathLike[str]) -> None:
    """Write a graph to a folder; a graph that is there is kept until the new one is on the disk.

    Raises:
        ValueError: there is something that is no saved graph.
        OutputError: the folder cannot be written; the graph that was there still is.
    """
    folder = Path(os.path.realpath(path))  # a link stays one, and what it leads to is replaced
    if not folder.exists():
        try:
            with atomic.appearing(folder) as aside:
                header = _write_arrays(graph, aside, generation=0)
                with atomic.new_file(aside / HEADER) as stream:
                    stream.write(_encoded(header))
            return
        except atomic.OutputError:
            if not folder.exists():  # otherwise another process has saved a graph there meanwhile
                raise
    _save_over(graph, folder)


def _save_over(graph: StoredGraph, folder: Path) -> None:
    read_header(folder)  # before anything of the folder is touched: only a saved graph is ever replaced
    with atomic.explained(folder), locks.alone_in(folder):
        old = read_header(folder)
        _remove_unnamed(folder, old)
        try:
            header = _write_arrays(graph, folder, old.get("generation", 0) + 1)
            atomic.sync_folder(folder)
            with atomic.replacing(folder / HEADER) as stream:
                stream.write(_encoded(header))
        except BaseException:
            with suppress(ValueError):
                if read_header(folder) == old:  # the new header may be there, only not confirmed by the disk
                    _remove_unnamed(folder, old)
            raise
        _remove_unnamed(folder, header)


def _write_arrays(graph: StoredGraph, folder: Path, generation: int) -> dict[str, Any]:
    """Write all arrays and return the header that makes them a graph."""
    checksums = {}
    for name, array in graph.arrays().items():
        file = file_name(name, generation)
        with atomic.new_file(folder / file) as stream:
            summed = _Summed(stream)
            np.save(summed, array, allow_pickle=False)
        checksums[file] = str(summed.checksum)
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION if graph.attributes is None else VERSION_WITH_VALUES,
        "num_entities": graph.num_entities,
        "num_relations": graph.num_relations,
        "generation": generation,
        "checksums": checksums,
    }


def _encoded(header: dict[str, Any]) -> bytes:
    return json.dumps(header, indent=2).encode() + b"\n"


def _remove_unnamed(folder: Path, header: dict[str, Any]) -> None:
    """Remove the arrays that a killed process left, or those of an older graph; other people's files stay."""
    asides.remove_leftovers(folder / HEADER)
    named = set(header.get("checksums") or (file_name(part, 0) for part in PARTS))
    for name in os.listdir(folder):
        if _ARRAY_FILE.fullmatch(name) and name not in named:
            with suppress(OSError):  # the graph is whole; the next save tries again
                disk.remove(folder / name)


class _Summed:
    """A stream for `numpy.save` that notes the checksum of what is written."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.checksum = Checksum()

    def write(self, data: bytes) -> int:
        self.checksum.add(data)
        return self.stream.write(data)
