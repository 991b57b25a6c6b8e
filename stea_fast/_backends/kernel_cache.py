"""Kernels that were compiled at run time, kept on the disk: below $XDG_CACHE_HOME, or ~/.cache."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from stea_fast._backends.nvrtc import Compiler, Image, source_bytes
from stea_fast._util import atomic

logger = logging.getLogger("stea_fast")


def folder() -> Path:
    """Where compiled kernels are kept; a relative $XDG_CACHE_HOME does not count, as its standard says."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "stea-fast" / "kernels"


def compiled(compiler: Compiler, target: str, kernels: Sequence[str]) -> Image:
    """The kernels for "sm_90" or "compute_90", from the disk if the same sources were compiled before."""
    identity = source_bytes() + repr((compiler.version, target, sorted(kernels))).encode()
    path = folder() / f"{target}-{hashlib.sha256(identity).hexdigest()[:32]}.bin"
    image = kept(path)
    if image is None:
        image = compiler.compile(target, kernels)
        try:
            keep(path, image)
        except OSError as error:
            logger.warning("compiled CUDA kernels cannot be kept and will be compiled in every process: %s", error)
    return image


def kept(path: Path) -> Image | None:
    """What is kept there; None if there is nothing, or it is damaged."""
    try:
        head, _, code = path.read_bytes().partition(b"\n")
        record = json.loads(head)
        if record["sha256"] == _digest(record["entries"], code):
            return Image(code, record["entries"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    logger.warning("the compiled CUDA kernels in %s are damaged and compiled anew", path)
    return None


def keep(path: Path, image: Image) -> None:
    """Write compiled kernels to a file, for which the folders are made."""
    record = {"entries": image.entries, "sha256": _digest(image.entries, image.code)}
    atomic.make_folders(path.parent)
    with atomic.replacing(path) as stream:
        stream.write(json.dumps(record).encode() + b"\n" + image.code)


def _digest(entries: dict[str, str], code: bytes) -> str:
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode() + code).hexdigest()
