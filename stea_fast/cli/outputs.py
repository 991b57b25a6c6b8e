"""Where commands write: what would destroy something, or cannot be written, is refused before the work begins."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from stea_fast._util.atomic import check_folder, check_writable
from stea_fast.cli.console import UsageError


def check_files(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None]) -> None:
    """Refuse outputs that are one file, that are an input, or that cannot be written.

    Args:
        outputs: the path of every option that names a file to write; None where it was not given.
        inputs: all that the command reads.

    Raises:
        UsageError: something would be lost.
        OutputError: something cannot be written.
    """
    files = {option: path for option, path in outputs.items() if path is not None}
    sources = [path for path in inputs if path is not None]
    earlier: dict[str, Path] = {}
    for option, path in files.items():
        for source in sources:
            if _is_same(path, source) or _is_part_of(path, source):
                raise UsageError(f"{option} {path} would overwrite what is read; choose another file")
        for other, other_path in earlier.items():
            if _is_same(path, other_path) and not path.is_char_device():  # /dev/null loses nothing that it should keep
                raise UsageError(f"{other} and {option} both name {path}: one would overwrite the other")
        earlier[option] = path
    for path in files.values():
        check_writable(path)


def check_checkpoint(folder: Path | None, outputs: Mapping[str, Path | None]) -> None:
    """Refuse a folder for checkpoints that cannot be written, or that is an output as well."""
    if folder is None:
        return
    for option, path in outputs.items():
        if path is not None and _is_same(path, folder):
            raise UsageError(f"{option} and --checkpoint both name {path}")
    check_folder(folder)


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one place, by links or by letters that the file system does not tell apart."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def _is_part_of(path: Path, folder: Path) -> bool:
    """Whether `path` is a file of a dataset: their names have no suffix. Results may lie beside them."""
    real = Path(os.path.realpath(path))
    is_data = os.path.isfile(real) and not real.suffix
    return folder.is_dir() and is_data and Path(os.path.realpath(folder)) in real.parents
