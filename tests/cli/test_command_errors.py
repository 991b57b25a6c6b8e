"""Bad input on the command line: one line that says what to do, an exit code, and earlier output untouched."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stea_fast.cli.main import main

pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")

CHAIN = "".join(
    f"<http://x/{{side}}{i}> <http://x/r{i % 3}> <http://x/{{side}}{(i * 7 + 1) % 60}> .\n" for i in range(60)
)


@pytest.fixture
def folder(tmp_path) -> Path:
    for side in "ab":
        (tmp_path / f"{side}.nt").write_text(CHAIN.format(side=side))
    (tmp_path / "seeds.tsv").write_text("".join(f"http://x/a{i}\thttp://x/b{i}\n" for i in range(20)))
    (tmp_path / "links.tsv").write_text("earlier output")
    return tmp_path


def align(folder: Path, **changes: object) -> list[str]:
    options = {"first": folder / "a.nt", "second": folder / "b.nt", "seeds": folder / "seeds.tsv",
               "out": folder / "links.tsv", **changes}  # fmt: skip
    return ["align", str(options["first"]), str(options["second"]), "--seeds", str(options["seeds"]), "--out",
            str(options["out"]), "--rounds", "1", "--calibration", "none", "--quiet"]  # fmt: skip


def fails(capsys, code: int, *words: str) -> str:
    """The single line of an error, after checking the exit code."""
    assert main(list(words)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    return lines[0]


@pytest.mark.parametrize("which", ["first", "second", "seeds"])
def test_a_missing_file_is_named(folder, capsys, which):
    error = fails(capsys, 1, *align(folder, **{which: folder / "absent.nt"}))
    assert "absent.nt" in error and "No such file" in error
    assert (folder / "links.tsv").read_text() == "earlier output"


@pytest.mark.parametrize(("name", "content", "message"), [
    ("a.nt", "", "holds no triples"),
    ("a.nt", "not,n-triples\n", "the first problem is"),
    ("a.parquet", "PAR?", "not a readable parquet file"),
    ("a.doc", "x", "names no known format"),
])  # fmt: skip
def test_a_graph_that_cannot_be_read_is_an_error(folder, capsys, name, content, message):
    (folder / name).write_text(content)
    error = fails(capsys, 1, *align(folder, first=folder / name))
    assert name in error and message in error
    assert (folder / "links.tsv").read_text() == "earlier output"


def test_unknown_entities_of_the_seeds_are_counted_with_the_first_few(folder, capsys):
    (folder / "seeds.tsv").write_text("http://x/a0\thttp://x/b0\n" + "nobody\thttp://x/b1\n" * 7)
    words = [word for word in align(folder) if word != "--quiet"]
    assert main(words) == 0
    notes = capsys.readouterr().err
    assert "7 of 8 links of" in notes and notes.count("nobody is no entity of the first graph") == 5
    error = fails(capsys, 1, *align(folder), "--strict")
    assert "seeds.tsv:2: nobody is no entity" in error


def test_seeds_without_any_known_entity_are_an_error(folder, capsys):
    (folder / "seeds.tsv").write_text("x\ty\n")
    assert "no link between entities of the two graphs" in fails(capsys, 1, *align(folder))


def test_seeds_with_swapped_columns_are_recognised(folder, capsys):
    rows = [line.split("\t") for line in (folder / "seeds.tsv").read_text().splitlines()]
    (folder / "seeds.tsv").write_text("".join(f"{target}\t{source}\n" for source, target in rows))
    assert "columns the other way round" in fails(capsys, 1, *align(folder))


def test_a_malformed_line_is_reported_and_strict_stops_there(folder, capsys):
    with (folder / "a.nt").open("a") as file:
        file.write("nonsense\n")
    assert main([word for word in align(folder) if word != "--quiet"]) == 0
    assert "a.nt:61: " in capsys.readouterr().err
    assert "a.nt:61: " in fails(capsys, 1, *align(folder), "--strict")


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("Unable to allocate 9.00 TiB")])
def test_too_little_memory_is_one_line_with_advice_and_a_code_of_its_own(folder, capsys, monkeypatch, error):
    def exhausted(*arguments, **options):
        raise error

    monkeypatch.setattr("stea_fast.cli.commands.align.align", exhausted)
    line = fails(capsys, 6, *align(folder))
    assert "not enough memory" in line and str(error) in line and "--literals drop" in line
    assert (folder / "links.tsv").read_text() == "earlier output"


def test_a_wrong_command_line_is_told_apart(folder, capsys):
    files = [str(folder / "a.nt"), str(folder / "b.nt"), "--out", str(folder / "l.tsv")]
    nothing = ("--use-names", "never", "--use-values", "never")
    assert "give --seeds, or allow names" in fails(capsys, 2, "align", *files, *nothing)
    assert "--no-structure leaves nothing" in fails(capsys, 2, *align(folder), "--no-structure")
    assert "give both" in fails(capsys, 2, *align(folder), "--features1", str(folder / "x.npy"))
    assert "expected two files" in fails(capsys, 2, "align", str(folder / "a.nt"), "--out", str(folder / "l.tsv"))
    assert "--min-prob" in fails(capsys, 2, *align(folder), "--min-prob", "7")
    with pytest.raises(SystemExit) as stopped:
        main(["align"])
    assert stopped.value.code == 2


def test_graphs_that_nothing_connects_are_an_error_of_its_own(folder, capsys):
    error = fails(capsys, 7, "align", str(folder / "a.nt"), str(folder / "b.nt"), "--out", str(folder / "links.tsv"),
                  "--quiet")  # fmt: skip
    assert "nothing to start from" in error and "no entity has a name" in error and "give some known links" in error
    assert (folder / "links.tsv").read_text() == "earlier output"


@pytest.mark.parametrize("place", ["absent/links.tsv", "a.nt/links.tsv", "."])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(folder, capsys, monkeypatch, place):
    monkeypatch.setattr("stea_fast.cli.commands.align.align", lambda *a, **k: pytest.fail("must not start"))
    words = align(folder, out=folder / place)
    if place == ".":
        words += ["--format", "tsv"]
    assert "cannot write" in fails(capsys, 3, *words)


def test_a_read_only_folder_is_refused(folder, capsys):
    closed = folder / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    if os.access(closed, os.W_OK):
        pytest.skip("this user may write everywhere")
    assert "Permission denied" in fails(capsys, 3, *align(folder, out=closed / "links.tsv"))


def run(words: list[str], **options: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "stea_fast", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )  # type: ignore[call-overload]


def test_a_full_disk_leaves_the_earlier_output(folder):
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

    process = run(["convert", str(folder / "a.nt"), str(folder / "links.tsv")], preexec_fn=small_files)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 3
    assert error.startswith("error: cannot write") and "untouched" in error
    assert (folder / "links.tsv").read_text() == "earlier output"
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_the_earlier_output(folder, number, code):
    (folder / "b.nt").unlink()
    os.mkfifo(folder / "b.nt")  # nobody writes into it: the run waits there

    def as_in_the_foreground() -> None:
        # What a shell puts into the background ignores Ctrl-C, and so do its children.
        signal.signal(number, signal.SIG_DFL)

    process = run([word for word in align(folder) if word != "--quiet"], preexec_fn=as_in_the_foreground)
    assert process.stderr is not None
    assert any("a.nt: KG" in line for line in iter(process.stderr.readline, ""))
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == code
    assert (folder / "links.tsv").read_text() == "earlier output"
    assert not list(folder.glob(".*"))


def test_a_reader_that_stops_early_is_no_error(folder):
    command = f"{sys.executable} -m stea_fast info {folder / 'a.nt'} | head -n 1"
    result = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr
