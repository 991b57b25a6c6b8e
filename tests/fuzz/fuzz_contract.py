"""What a reader may do with a file, whatever is in it: read it, or raise an error of ours that says what is wrong.

An error is ours if it is of a documented type and a `raise` statement of the package made it: then somebody has thought
of the case, and written the message. Anything else (a `KeyError` of a library, an `int("x")` that nobody caught) is a
defect, and so is an end by a signal, more than `SECONDS` of the processor for a file of a few kilobytes, or more than
`MEMORY` bytes.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from types import TracebackType

import stea_fast
from stea_fast.formats.triple_table import MissingExtraError
from stea_fast.selftraining.checkpoint import CheckpointError

DOCUMENTED = (ValueError, OSError, MissingExtraError, CheckpointError)
SECONDS = 10.0
MEMORY = 1 << 30  # above what the process had before
PACKAGE = Path(stea_fast.__file__).parent


def is_ours(error: BaseException) -> bool:
    """Whether an error keeps the contract."""
    if not isinstance(error, DOCUMENTED):
        return False
    if isinstance(error, OSError):  # the system's own words: no such file, is a folder
        return True
    file, line = _place(error.__traceback__)
    return file.is_relative_to(PACKAGE) and line in _raising_lines(file)


def _place(traceback: TracebackType | None) -> tuple[Path, int]:
    """The file and line of the innermost frame."""
    assert traceback is not None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return Path(traceback.tb_frame.f_code.co_filename), traceback.tb_lineno


@cache
def _raising_lines(file: Path) -> frozenset[int]:
    """The lines of a file that belong to `raise` statements."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    return frozenset(line for node in statements for line in range(node.lineno, (node.end_lineno or 0) + 1))
