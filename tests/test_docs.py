"""The documentation says what is true: every code block of it runs."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import re
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import stea_fast as sf

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    return [body for tag, body in BLOCK.findall(page.read_text(encoding="utf-8")) if tag == language]


@pytest.fixture
def desk(tmp_path):
    """A folder with the files that the pages speak of, and `stea-fast` on the path."""
    for package in ("pyoxigraph", "pyarrow", "pandas", "networkx"):
        pytest.importorskip(package, reason=f"the pages use {package}")
    pair = sf.synthetic_pair(150, seed=0, seed_fraction=0.2)
    for name, kg, side in (("a.nt", pair.kg1, 1), ("b.ttl", pair.kg2, 2)):
        lines = [
            f"<http://{side}.org/{h}> <http://{side}.org/r{r}> <http://{side}.org/{t}> .\n"
            for h, r, t in kg.triples.tolist()
        ]
        (tmp_path / name).write_text("".join(lines))
    links = "".join(f"http://1.org/{e}\thttp://2.org/{e2}\n" for e, e2 in pair.train.tolist())
    (tmp_path / "seeds.tsv").write_text(links)
    (tmp_path / "gold.tsv").write_text(links + "http://1.org/none\thttp://2.org/none\n")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "stea-fast"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m stea_fast "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return tmp_path


def run(command: list[str], folder: Path) -> None:
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    environment = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem)
def test_the_python_of_a_page_runs(page, desk):
    script = desk / "page.py"
    script.write_text("\n".join(blocks(page, "python")), encoding="utf-8")
    run([sys.executable, str(script)], desk)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page, desk):
    run(["bash", "-e", "-c", "\n".join(blocks(page, "sh"))], desk)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_other_block_hides_from_these_tests(page):
    """A `console` block installs something, a `text` block is a command with its output; anything else must run."""
    tags = {tag for tag, _ in BLOCK.findall(page.read_text(encoding="utf-8"))}
    assert tags <= {"python", "sh", "console", "text"}
    assert all(body.startswith("$ ") for body in blocks(page, "text"))  # tests/bench/test_pages.py
    for body in blocks(page, "console"):
        assert all(line.startswith(("pip install", "make ")) for line in body.splitlines())


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {page.name for page in PAGES}


def referenced() -> list[tuple[str, str]]:
    """(module, name) of everything that the reference shows."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    return [tuple(path.rsplit(".", 1)) for path in re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)]


def test_every_public_name_is_in_the_reference_exactly_once():
    shown = Counter(name for _, name in referenced())
    public = set(sf.__all__) - {"__version__"}
    assert {name: shown[name] for name in public} == dict.fromkeys(public, 1)


def test_the_reference_shows_what_the_package_exports():
    for module, name in referenced():
        value = getattr(importlib.import_module(module), name)
        if name in sf.__all__:
            assert value is getattr(sf, name)


def option_tables() -> dict[str, list[tuple[str, str]]]:
    """(option, default) of every row, by the heading of the table, in the page of options."""
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    sections = re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]
    return {
        section.partition("\n")[0].strip("`").removeprefix("sf."): re.findall(
            r"^\| `(\w+)` \| `(.+?)` \|", section, re.MULTILINE
        )
        for section in sections
    }


OPTION_CLASSES = {
    name: getattr(sf, name)
    for name in sf.__all__
    if dataclasses.is_dataclass(getattr(sf, name)) and inspect.signature(getattr(sf, name)).parameters
    and all(p.kind is p.KEYWORD_ONLY for p in inspect.signature(getattr(sf, name)).parameters.values())
}  # fmt: skip


@pytest.mark.parametrize("name", OPTION_CLASSES)
def test_the_table_of_a_class_has_its_options_and_defaults(name):
    default = OPTION_CLASSES[name]()
    evaluated = [(option, eval(text, vars(sf).copy(), OPTION_CLASSES)) for option, text in option_tables()[name]]
    assert evaluated == [(field.name, getattr(default, field.name)) for field in dataclasses.fields(default)]


@pytest.mark.parametrize(
    ("heading", "function"), [("Refinement", sf.refine), ("Alignment", sf.align), ("Search", sf.topk)]
)
def test_the_table_of_a_function_has_its_options_and_defaults(heading, function):
    options = {p.name: p.default for p in inspect.signature(function).parameters.values() if p.default is not p.empty}
    assert {option: eval(text) for option, text in option_tables()[heading]} == options
