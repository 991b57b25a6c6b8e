"""The state of a run on disk: one file, written aside and renamed, without pickle."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stea_fast import __version__
from stea_fast._util.arrays import is_torch, to_numpy
from stea_fast._util.atomic import flush
from stea_fast.data.pair import Pair

NAME = "checkpoint.safetensors"
FORMAT = 2  # raised whenever other things are stored, or the same ones otherwise
PAIRS = "pairs"
ENCODER = "encoder."


class CheckpointError(RuntimeError):
    """Raised when a checkpoint belongs to other data, options or versions, or cannot be read or written."""


@dataclass(frozen=True, eq=False)
class Saved:
    """What a checkpoint holds."""

    encoder: dict[str, Any]
    pairs: np.ndarray
    history: list[dict[str, Any]]
    measured: dict[str, dict[str, float]]


class Checkpoint:
    """Checkpoints of one run.

    Args:
        folder: made if it is not there.
        pair: the data; a checkpoint of other data is refused.
        settings: what the result depends on; a checkpoint of other settings is refused.
    """

    def __init__(self, folder: Path, pair: Pair, settings: dict[str, Any]) -> None:
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

    def save(
        self, encoder: dict[str, Any], pairs: np.ndarray, history: list[Any], measured: dict[str, dict[str, float]]
    ) -> None:
        """Replace the last checkpoint; if that fails, it is still there. `measured` is of the round in progress."""
        library = _library()
        kinds = {name: "torch" if is_torch(value) else "numpy" for name, value in encoder.items()}
        tensors = {ENCODER + name: np.ascontiguousarray(to_numpy(value, name)) for name, value in encoder.items()}
        tensors[PAIRS] = np.ascontiguousarray(pairs)
        records = [dataclasses.asdict(record) for record in history]
        metadata = {**self.identity, "history": json.dumps(records), "measured": json.dumps(measured)}
        metadata["kinds"] = json.dumps(kinds)
        aside = self.path.with_suffix(f".{os.getpid()}.tmp")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._sweep()
            library.save_file(tensors, aside, metadata)
            flush(aside)
            os.replace(aside, self.path)
            flush(self.folder)
        except (OSError, library.SafetensorError) as error:
            raise CheckpointError(
                f"cannot write {self.path}: {error}; the last good checkpoint is untouched"
            ) from error
        finally:
            aside.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what killed processes had written aside."""
        for path in self.folder.glob(f"{self.path.stem}.*.tmp"):
            writer = path.suffixes[-2][1:]
            if writer.isdigit() and not _is_running(int(writer)):
                path.unlink(missing_ok=True)

    def load(self) -> Saved:
        """The last checkpoint, if it belongs to this run."""
        safe_open = _library().safe_open
        try:
            with safe_open(self.path, framework="np") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except Exception as error:
            raise CheckpointError(f"cannot read {self.path}: {error}") from None
        for part, expected in self.identity.items():
            if metadata.get(part) != expected:
                raise CheckpointError(
                    f"{self.path} is of another {part}: {metadata.get(part)!r}, but this run has {expected!r}; "
                    "use another folder, or delete it to start anew"
                )
        try:
            history, measured, kinds = (json.loads(metadata[part]) for part in ("history", "measured", "kinds"))
            encoder = {name: _as_kind(tensors[ENCODER + name], kind) for name, kind in kinds.items()}
            return Saved(encoder, tensors[PAIRS], history, measured)
        except (KeyError, ValueError, AttributeError, RecursionError) as error:
            raise CheckpointError(f"{self.path} lacks a part: {error}; delete it to start anew") from None


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


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class _Safetensors:
    def __init__(self) -> None:
        from safetensors import SafetensorError, safe_open
        from safetensors.numpy import save_file

        self.safe_open, self.save_file, self.SafetensorError = safe_open, save_file, SafetensorError


def _library() -> _Safetensors:
    try:
        return _Safetensors()
    except ModuleNotFoundError:
        raise ModuleNotFoundError("checkpoints need safetensors: pip install 'stea-fast[torch]'") from None
