"""Mutations guided by coverage, by atheris where it is installed: a process of its own for every reader.

    python tests/fuzz/fuzz_guided.py "graph a.nt" SECONDS FOLDER

To atheris an input is a string of bytes: the first says which file of a seed is replaced, the others are its content.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from fuzz_contract import MEMORY, SECONDS, is_ours
from fuzz_mutations import LARGEST, Files
from fuzz_targets import TARGETS, Target
from fuzz_worker import put


def is_installed() -> bool:
    """Whether there is an atheris for this Python."""
    return importlib.util.find_spec("atheris") is not None


def found(target: Target, seconds: float) -> list[Files]:
    """The inputs that a run of atheris ended with: at most one, as it stops there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, __file__, target.name, str(int(seconds)), name]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return [_files(target, path.read_bytes()) for path in sorted(folder.glob("found-*"))]


def _files(target: Target, data: bytes) -> Files:
    files = dict(target.seeds()[0])
    names = sorted(files)
    files[names[data[0] % len(names) if data else 0]] = data[1:]
    return files


def _write_corpus(target: Target, folder: Path) -> None:
    folder.mkdir()
    for number, files in enumerate(target.seeds()):
        for place, name in enumerate(sorted(files)):
            (folder / f"{number}.{place}").write_bytes(bytes([place]) + files[name])


def main() -> None:
    """Run atheris on one reader."""
    import atheris

    target, seconds, folder = TARGETS[sys.argv[1]], sys.argv[2], Path(sys.argv[3])
    _write_corpus(target, folder / "corpus")

    def read(data: bytes) -> None:
        put(_files(target, data), folder / "input")
        try:
            target.read(folder / "input")
        except Exception as error:
            if not is_ours(error):
                raise

    atheris.instrument_all()
    options = [
        f"-max_total_time={seconds}", f"-timeout={SECONDS:g}", f"-rss_limit_mb={MEMORY * 2 >> 20}",
        f"-max_len={LARGEST}", f"-artifact_prefix={folder / 'found-'}", str(folder / "corpus"),
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
