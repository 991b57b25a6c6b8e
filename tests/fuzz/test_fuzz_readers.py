"""Whatever is in a file, a reader reads it or says what is wrong: mutated files, and those that once did harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")
pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
pytest.importorskip("zstandard", reason="zstd needs zstandard")
pytest.importorskip("safetensors", reason="checkpoints need safetensors")
if not sys.platform.startswith("linux"):
    pytest.skip("the limits of the children are those of Linux", allow_module_level=True)

from fuzz_contract import is_ours
from fuzz_targets import TARGETS, Target, saved_inputs
from fuzz_worker import make_input, replay, run

HERE = Path(__file__).resolve().parent
REGRESSIONS = list(saved_inputs(HERE / "regressions"))


def reader(action) -> Target:
    """A reader that does something to the file "a"."""
    return Target("reader", lambda: [{"a": b"content"}], lambda folder: action((folder / "a").read_bytes()))


def hang(content: bytes) -> None:
    while True:
        pass


BAD = [
    (lambda content: os.kill(os.getpid(), signal.SIGSEGV), "crash: SIGSEGV"),
    (lambda content: os.abort(), "crash: SIGABRT"),
    (lambda content: os._exit(7), "ended with code 7"),
    (hang, "hangs: more than 0.1 s"),
    (lambda content: signal.pause(), "hangs: more than 0.1 s"),
    (lambda content: bytearray(1 << 29), "MemoryError"),
    (lambda content: {}[content], "KeyError"),
    (lambda content: int(content), "ValueError: invalid literal for int()"),
]


@pytest.mark.parametrize(("action", "what"), BAD)
def test_the_harness_notices_what_a_reader_must_not_do(action, what):
    assert replay(reader(action), {"a": b"content"}, seconds=0.1, memory=1 << 28).startswith(what)


def test_the_harness_goes_on_behind_an_input_that_ends_a_process_and_can_make_it_again():
    def fragile(content: bytes) -> None:
        if len(content) < 4:
            os.abort()

    tally = run(reader(fragile), 0, 0, 60)
    assert tally.inputs == 60 and 0 < len(tally.failures) < 60
    for failure in tally.failures:
        assert len(make_input(reader(fragile), 0, failure.number)["a"]) < 4


def test_an_error_is_ours_if_the_package_raises_it_and_not_if_it_lets_it_pass():
    from stea_fast.formats.tab_separated import read_strings

    errors = []
    for action in (lambda: read_strings(HERE / "run.py", 7), lambda: int("x"), Path("absent").read_bytes):
        with pytest.raises((ValueError, OSError)) as caught:
            action()
        errors.append(caught.value)
    assert [is_ours(error) for error in errors] == [True, False, True]


@pytest.mark.parametrize("name", TARGETS)
def test_every_reader_reads_the_files_that_are_mutated(tmp_path, name):
    """Otherwise every mutation would be refused at the same first place."""
    target = TARGETS[name]
    for number, files in enumerate(target.seeds()):
        folder = tmp_path / str(number)
        folder.mkdir()
        for file, content in files.items():
            (folder / file).write_bytes(content)
        target.read(folder)


@pytest.mark.parametrize(
    ("target", "name", "files"), REGRESSIONS, ids=[f"{one[0].name}: {one[1]}" for one in REGRESSIONS]
)
def test_files_that_once_did_harm_do_so_no_more(target, name, files):
    assert replay(target, files) is None


def test_every_regression_is_of_a_reader():
    assert {path.name for path in (HERE / "regressions").iterdir()} == {target.folder for target, _, _ in REGRESSIONS}


@pytest.mark.slow
def test_mutated_files_are_read_or_refused_by_every_reader(tmp_path):
    """In a process of its own, which forks its children before any library has started a thread."""
    command = [sys.executable, HERE / "run.py", "--inputs", "2000", "--save", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
