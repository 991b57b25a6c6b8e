"""Every public name says what it is, what it takes, what it gives, and shows it: the rule, and the examples run.

The rule, for every name in `stea_fast.__all__`:
- a function has Args (an entry for every parameter), Returns, and an example;
- a class has Args or Attributes (an entry for every argument of its constructor) and an example;
- an exception says when it is raised;
- a public method of such a class has Args and Returns where it takes and gives something; a property a sentence.
"""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import stea_fast as sf

PUBLIC = {name: getattr(sf, name) for name in sf.__all__ if name != "__version__"}
SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises", "Example")
ENTRY = re.compile(r"^ {4}(\w+): (.*)$")
# Fragments that only their writer understands: "of the search.", "so many per entity", "as in `refine`".
TELEGRAM = re.compile(r"\bso (many|often|few)\b|: (of|as in|for|by|the same) |^(of|as|for) ", re.IGNORECASE)


def is_exception(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that the package itself defines."""
    for name in dir(cls):
        static = inspect.getattr_static(cls, name)
        function = static.fget if isinstance(static, property) else getattr(static, "__func__", static)
        if not inspect.isfunction(function) or not function.__module__.startswith("stea_fast"):
            continue
        if not name.startswith("_") or name == "__call__":
            yield name, static if isinstance(static, property) else getattr(cls, name)


METHODS = {
    f"{name}.{member}": value
    for name, cls in PUBLIC.items()
    if inspect.isclass(cls) and not is_exception(cls)
    for member, value in members(cls)
}
DOCUMENTED = {**PUBLIC, **METHODS}


def sections(value: Any) -> dict[str, list[str]]:
    """The lines of each section of a docstring; "" has those before the first one."""
    found: dict[str, list[str]] = {"": []}
    current = ""
    for line in (inspect.getdoc(value) or "").splitlines():
        if line.rstrip(":") in SECTIONS and line.endswith(":"):
            current = line[:-1]
            found[current] = []
        else:
            found[current].append(line)
    return found


def entries(lines: list[str]) -> dict[str, str]:
    """The text of every `name: text` entry of a section, its lines joined."""
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        entry = ENTRY.match(line)
        if entry:
            name, found[entry[1]] = entry[1], entry[2]
        elif name and line.startswith(" " * 8):
            found[name] += " " + line.strip()
    return found


def parameters(value: Any) -> list[inspect.Parameter]:
    signature = inspect.signature(value)
    return [p for p in signature.parameters.values() if p.name != "self" and not p.name.startswith("_")]


def described(value: Any) -> dict[str, str]:
    found = sections(value)
    return {**entries(found.get("Attributes", [])), **entries(found.get("Args", []))}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_first_line_is_a_sentence(name):
    summary = (inspect.getdoc(DOCUMENTED[name]) or "").partition("\n")[0]
    assert re.match(r"[A-Z`\d]", summary), summary
    assert summary.endswith((".", ":")), summary
    assert len(summary.split()) >= 4, summary


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_parameter_is_explained(name):
    value = DOCUMENTED[name]
    if isinstance(value, property) or is_exception(value):
        return
    texts = described(value)
    for parameter in parameters(value):
        text = texts.get(parameter.name)
        assert text, f"{name} does not explain {parameter.name}"
        if parameter.default is None:
            assert re.search(r"\bdefault\b|\bNone\b", text), f"{name} does not say what {parameter.name}=None means"
    if not inspect.isclass(value):
        known = {parameter.name for parameter in parameters(value)}
        assert set(texts) <= known, f"{name} explains {set(texts) - known}, which it does not take"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_what_a_function_returns_is_explained(name):
    value = DOCUMENTED[name]
    if inspect.isclass(value) or isinstance(value, property):
        return
    if inspect.signature(value).return_annotation not in (None, "None"):
        assert sections(value).keys() & {"Returns", "Yields"}, name


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if not is_exception(value)])
def test_there_is_an_example(name):
    example = "\n".join(sections(PUBLIC[name]).get("Example", []))
    assert ">>> " in example
    assert re.search(rf"\b{name}\b", example) or inspect.isclass(PUBLIC[name]), f"the example does not use {name}"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_entries_are_sentences(name):
    value = DOCUMENTED[name]
    found = sections(value)
    texts = {**described(value), **entries(found.get("Raises", []))}
    for entry, text in texts.items():
        assert re.match(r"[^a-z]", text) and text.endswith((".", "…")), f"{name}, {entry}: {text}"
        assert not TELEGRAM.search(text), f"{name}, {entry}: {text}"
    for line in found[""] + found.get("Returns", []):
        assert not re.search(r"\bso (many|often|few)\b", line), f"{name}: {line}"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples may write files
    value = DOCUMENTED[name]
    text = inspect.getdoc(value) or ""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)
