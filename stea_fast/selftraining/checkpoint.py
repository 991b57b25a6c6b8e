"""The state of a run on disk: one file, written aside and renamed, without pickle, and a lock while the run lasts."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stea_fast import __version__
from stea_fast._util import atomic, locks
from stea_fast._util.arrays import is_torch, to_numpy
from stea_fast.data.pair import Pair
from stea_fast.selftraining import tensor_file
from stea_fast.selftraining.finished import PackedResult

LOGGER = "stea_fast.checkpoint"  # says what is continued, and what is not repeated
NAME = "checkpoint.safetensors"
LOCK = "run.lock"
FORMAT = 4  # raised whenever other things are stored, or the same ones otherwise
PAIRS = "pairs"
ENCODER, RESULT = "encoder.", "result."  # what the names of their arrays begin with


class CheckpointError(RuntimeError):
    """Raised when a checkpoint belongs to other data, options or versions, or cannot be read or written."""


class CheckpointWriteError(CheckpointError, atomic.OutputError):
    """Raised when a checkpoint cannot be written, or when another run is using its folder."""

    def __init__(self, message: str) -> None:
        OSError.__init__(self, message)


@dataclass(frozen=True, eq=False)
class Saved:
    """What a checkpoint holds; a result if the run is finished."""

    encoder: dict[str, Any]
    pairs: np.ndarray
    history: list[dict[str, Any]]
    measured: dict[str, dict[str, float]]
    result: PackedResult | None = None


class Checkpoint:
    """Checkpoints of one run.

    Args:
        folder: made if it is not there.
        pair: the data; a checkpoint of other data is refused.
        settings: what the result depends on; a checkpoint of other settings is refused.
    """

    def __init__(self, folder: Path, pair: Pair, settings: dict[str, Any]) -> None:
        _require_safetensors()
        self.folder = folder
        self.path = folder / NAME
        self.identity = {
            "version": __version__,
            "format": str(FORMAT),
            "data": data_fingerprint(pair),
            "settings": json.dumps(settings, sort_keys=True),
        }

    def exists(self) -> bool:
        """Whether there is something to continue from."""
        return self.path.exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the folder during a block, or say which one is in it."""
        try:
            atomic.make_folders(self.folder)
            lock = ExitStack()
            lock.enter_context(locks.held(self.folder / LOCK))
        except locks.LockHeldError as error:
            raise CheckpointWriteError(f"{error}; wait until it has ended, or use another folder") from None
        except OSError as error:
            raise CheckpointWriteError(f"cannot write to {self.folder}: {error.strerror or error}") from error
        with lock:
            yield

    def save(
        self, encoder: dict[str, Any], pairs: np.ndarray, history: list[Any], measured: dict[str, dict[str, float]],
        result: PackedResult | None = None,
    ) -> None:  # fmt: skip
        """Replace the last checkpoint; if that fails, it is still there. `measured` is of the round in progress."""
        arrays = {ENCODER + name: value for name, value in encoder.items()}
        if result is not None:
            arrays |= {RESULT + name: value for name, value in result.arrays.items()}
        kinds = {name: "torch" if is_torch(value) else "numpy" for name, value in arrays.items()}
        tensors = {name: to_numpy(value, name) for name, value in arrays.items()}
        tensors[PAIRS] = pairs
        records = [dataclasses.asdict(record) for record in history]
        metadata = {**self.identity, "history": json.dumps(records), "measured": json.dumps(measured)}
        metadata["kinds"] = json.dumps(kinds)
        metadata["result"] = json.dumps(None if result is None else result.plain)
        try:
            atomic.make_folders(self.folder)
            with atomic.replacing(self.path) as stream:
                tensor_file.write(stream, tensors, metadata)
        except OSError as error:
            raise CheckpointWriteError(str(error)) from error

    def load(self) -> Saved:
        """The last checkpoint, if it is whole and belongs to this run."""
        try:
            tensors, metadata = tensor_file.read(self.path)
        except (OSError, tensor_file.DamagedFileError) as error:
            raise CheckpointError(f"cannot read {self.path}: {error}; delete it to start anew") from None
        if not metadata:
            raise CheckpointError(f"{self.path} does not say of what it is a checkpoint; delete it to start anew")
        for part, expected in self.identity.items():
            if metadata.get(part) != expected:
                raise CheckpointError(
                    f"{self.path} is of another {part}: {metadata.get(part)!r}, but this run has {expected!r}; "
                    "use another folder, or delete it to start anew"
                )
        if metadata.get(tensor_file.CHECKSUM) != tensor_file.checksum(tensors, metadata):
            raise CheckpointError(f"{self.path} is damaged: its checksum is wrong; delete it to start anew")
        try:
            return _saved(tensors, metadata)
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointError(f"{self.path} lacks a part: {error}; delete it to start anew") from None


def _saved(tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> Saved:
    """The contents of a whole file; an error where it is not what it should be."""
    history, measured, kinds, plain = (
        json.loads(metadata[part]) for part in ("history", "measured", "kinds", "result")
    )
    encoder, arrays = (
        {
            name.removeprefix(part): _as_kind(tensors[name], kind)
            for name, kind in kinds.items()
            if name.startswith(part)
        }
        for part in (ENCODER, RESULT)
    )
    result = None if plain is None else PackedResult(plain, arrays)
    return Saved(encoder, tensors[PAIRS], history, measured, result)


def data_fingerprint(pair: Pair) -> str:
    """Of the graphs and the seeds; test links have no part in it."""
    digest = hashlib.sha256()
    for array in (pair.kg1.indptr, pair.kg1.edges, pair.kg2.indptr, pair.kg2.edges, pair.train, pair.valid):
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _as_kind(array: np.ndarray, kind: str) -> Any:
    if kind == "numpy":
        return array
    if kind != "torch":
        raise ValueError(f"an array of an unknown kind, {kind!r}")
    import torch

    return torch.from_numpy(array)


def _require_safetensors() -> None:
    if importlib.util.find_spec("safetensors") is None:
        raise ModuleNotFoundError("checkpoints need safetensors: pip install 'stea-fast[torch]'")
