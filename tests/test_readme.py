"""The README says what is true: its examples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_every_python_example_of_the_readme_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        script = tmp_path / "example.py"
        script.write_text(block, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(README.parent)}  # the tree that this README belongs to
        result = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr


def test_the_first_example_has_at_most_twelve_lines():
    first = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert first is not None
    assert len(first.group(1).strip().splitlines()) <= 12


def test_every_file_the_readme_links_to_exists():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).exists(), target
