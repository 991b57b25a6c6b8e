"""Everything that changes a file goes through one layer, so that the tests of failing disks reach it."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "stea_fast"
CHANGES = re.compile(
    r"(?<!tabular)\.write_text\(|\.write_bytes\(|\bos\.(?:replace|rename|remove|unlink|mkdir|makedirs|rmdir|write|fsync|ftruncate)\("
    r"|(?<!disk)\.(?:unlink|rmdir|mkdir|touch|rename)\(|\bshutil\b|\btempfile\b|\bopen\([^)]*[\"'][wax]b?\+?[\"']|\bsave_file\b"
)
EXAMPLE = re.compile(r"\s*(?:>>>|\.\.\.) ")  # in a docstring
EXCEPTIONS = {
    # Messages between the processes of one run, in a folder that goes with it: nothing that outlasts the run.
    "_executors/messages.py",
    "_executors/process_worker.py",
    "_executors/processes.py",
    "_util/disk.py",  # the layer itself
    "_util/memory.py",  # a switch of the system that looks like a file
    "cli/commands/bench.py",  # a file to read, in a temporary folder
}


def test_only_the_layer_of_system_calls_changes_files():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        changing = [line.strip() for line in lines if CHANGES.search(line) and not EXAMPLE.match(line)]
        if changing:
            found[str(path.relative_to(PACKAGE))] = changing
    assert found.keys() == EXCEPTIONS, found
