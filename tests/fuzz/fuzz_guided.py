"""Mutations guided by coverage, by atheris where it is installed: a process of its own for every reader.

To atheris an input is a string of bytes: the first says which file of a seed is replaced, the others are its content.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from fuzz_mutations import Files
from fuzz_targets import Target

CHILD = Path(__file__).with_name("guided_child.py")


def is_installed() -> bool:
    """Whether there is an atheris for this Python."""
    return importlib.util.find_spec("atheris") is not None


def found(target: Target, seconds: float) -> list[Files]:
    """The inputs that a run of atheris ended with: at most one, as it stops there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, CHILD, target.name, str(int(seconds)), name]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return [files_of(target, path.read_bytes()) for path in sorted(folder.glob("found-*"))]


def files_of(target: Target, data: bytes) -> Files:
    """An input from bytes."""
    files = dict(target.seeds()[0])
    names = sorted(files)
    files[names[data[0] % len(names) if data else 0]] = data[1:]
    return files


def as_bytes(target: Target) -> list[bytes]:
    """The seeds as bytes, one for every file of each."""
    return [bytes([place]) + files[name] for files in target.seeds() for place, name in enumerate(sorted(files))]
