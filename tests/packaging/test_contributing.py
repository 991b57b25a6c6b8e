"""The guide for contributors names what is there, and the places that repeat the version agree."""

from __future__ import annotations

import re
from pathlib import Path

import stea_fast

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_path_of_the_guide_exists():
    paths = re.findall(r"`((?:\.github|bench|csrc|docs|examples|stea_fast|tests)/[\w./-]*)`", GUIDE)
    paths += re.findall(r"\]\((?!http)([^)#]+)\)", GUIDE)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_guide_shows_every_room():
    rooms = {path.name for path in (ROOT / "stea_fast").iterdir() if (path / "__init__.py").exists()}
    assert rooms <= set(re.findall(r"`stea_fast/(\w+)/`", GUIDE))


def test_the_citation_has_the_version_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {stea_fast.__version__}\n" in citation


def test_the_changelog_has_the_version_and_a_place_for_what_is_new():
    titles = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert titles[:2] == ["Unreleased", stea_fast.__version__]
