"""Runs the commands of docs/worked-example.md, and writes under each what it printed; then takes the pictures.

python -m bench.pages.refresh [--page docs/worked-example.md] [--dataset dbp15k_fr_en] [--no-pictures]

A block of the page that begins with `$ ` is a command and its output. The commands run one after the other in a new
folder that holds the dataset under its name; `stea-fast` is the one of this checkout. Pictures need chromium and
chromium-driver.
"""

from __future__ import annotations

import argparse
import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.lib.folders import DOCS
from bench.lib.inputs import dataset_folder
from bench.lib.processes import environment

PAGE = DOCS / "worked-example.md"
SHOWN = re.compile(r"^```text\n(\$ .*?)^```$", re.DOTALL | re.MULTILINE)
# A bar on a terminal is gone when it is full; elsewhere it is such lines, which tell a reader of the page nothing.
PROGRESS = re.compile(r"^.*: +\d+ %.*\n", re.MULTILINE)


def command_of(block: str) -> str:
    """The command at the beginning of a block: its first line, and further ones while they end in a backslash."""
    lines = block.splitlines(keepends=True)
    count = next(i for i, line in enumerate(lines, 1) if not line.rstrip("\n").endswith("\\"))
    return "".join(lines[:count])


def commands(page: str) -> list[str]:
    """The commands of a page, as a shell takes them."""
    return [command_of(block).removeprefix("$ ") for block in SHOWN.findall(page)]


def refreshed(page: str, folder: Path) -> str:
    """The page with what its commands print now; they run in the folder."""

    def with_output(block: re.Match[str]) -> str:
        command = command_of(block[1])
        print(command, end="", file=sys.stderr, flush=True)
        return f"```text\n{command}{_output(command.removeprefix('$ '), folder)}```"

    return SHOWN.sub(with_output, page)


def _output(command: str, folder: Path) -> str:
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env={**environment(), "PATH": path}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{command}failed with exit code {done.returncode}:\n{done.stdout[-2000:]}")
    return PROGRESS.sub("", done.stdout)


def prepare(folder: Path, dataset: Path | None) -> None:
    """Put `stea-fast` into the folder, and the dataset under its name."""
    program = folder / "bin" / "stea-fast"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m stea_fast "$@"\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    if dataset is not None:
        (folder / dataset.name).symlink_to(dataset.resolve())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--dataset", default="dbp15k_fr_en")
    parser.add_argument("--no-pictures", action="store_true", help="where there is no browser")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, dataset_folder(given.dataset))
        text = refreshed(given.page.read_text(encoding="utf-8"), folder)
        given.page.write_text(text, encoding="utf-8")
        if not given.no_pictures:
            from bench.pages.pictures import take_pictures

            take_pictures(folder / "report.html", given.page.parent / "figures")


if __name__ == "__main__":
    main()
