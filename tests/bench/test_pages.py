"""Pages that show real output: their commands are right, and can be run anew to replace what they printed."""

from __future__ import annotations

import re
import shlex

import pytest

from bench.lib.folders import DOCS
from bench.pages import refresh
from stea_fast.cli.main import make_parser

PAGES = [page for page in sorted(DOCS.glob("*.md")) if refresh.SHOWN.search(page.read_text(encoding="utf-8"))]


def test_the_worked_example_is_such_a_page():
    assert refresh.PAGE in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_is_one_and_has_its_output(page):
    text = page.read_text(encoding="utf-8")
    for block in refresh.SHOWN.findall(text):
        assert block.removeprefix(refresh.command_of(block)).strip(), f"nothing is shown under {block}"
    ours = [command for command in refresh.commands(text) if command.startswith("stea-fast ")]
    assert ours
    for command in ours:
        make_parser().parse_args(shlex.split(command.replace("\\\n", " "))[1:])


def test_pictures_are_there_and_light():
    pictures = re.findall(r"!\[.+?\]\((.+?\.png)\)", refresh.PAGE.read_text(encoding="utf-8"))
    assert len(pictures) == 3
    assert all(1_000 < (DOCS / picture).stat().st_size < 200_000 for picture in pictures)


def test_commands_are_run_and_their_output_replaced(tmp_path):
    page = (
        "Before.\n\n```text\n$ echo one \\\n    two; echo three >&2\nold\n```\n\n"
        "```sh\necho not shown\n```\n\n```text\n$ pwd\n```\n"
    )
    refreshed = refresh.refreshed(page, tmp_path)
    assert "```text\n$ echo one \\\n    two; echo three >&2\none two\nthree\n```" in refreshed
    assert "```sh\necho not shown\n```" in refreshed and f"$ pwd\n{tmp_path}\n```" in refreshed
    assert refresh.refreshed(refreshed, tmp_path) == refreshed


def test_progress_is_not_part_of_the_output_and_stea_fast_is_at_hand(tmp_path):
    refresh.prepare(tmp_path, None)
    page = "```text\n$ stea-fast --version; echo 'top-10 of 7 x 7: 4 %, 0.4 % per second, 238 s left'; echo 100 %\n```"
    lines = refresh.refreshed(page, tmp_path).splitlines()
    assert lines[2].startswith("stea-fast ") and lines[3:] == ["100 %", "```"]


def test_a_command_that_fails_leaves_the_page_alone(tmp_path):
    with pytest.raises(SystemExit, match=r"failed with exit code 3:\nthe reason"):
        refresh.refreshed("```text\n$ echo the reason; exit 3\n```", tmp_path)
