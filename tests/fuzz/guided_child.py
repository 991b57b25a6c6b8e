"""atheris on one reader; started by fuzz_guided.py as `guided_child.py READER SECONDS FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["stea_fast"]):
    from fuzz_targets import TARGETS

from fuzz_contract import MEMORY, SECONDS, is_ours
from fuzz_guided import as_bytes, files_of
from fuzz_mutations import LARGEST
from fuzz_worker import put


def main() -> None:
    """Fuzz until the time is over or an input breaks the contract; that one is put into the folder."""
    target, seconds, folder = TARGETS[sys.argv[1]], sys.argv[2], Path(sys.argv[3])
    put({str(number): data for number, data in enumerate(as_bytes(target))}, folder / "corpus")

    def read(data: bytes) -> None:
        put(files_of(target, data), folder / "input")
        try:
            target.read(folder / "input")
        except Exception as error:
            if not is_ours(error):
                raise

    options = [
        f"-max_total_time={seconds}", f"-timeout={SECONDS:g}", f"-rss_limit_mb={MEMORY * 2 >> 20}",
        f"-max_len={LARGEST}", f"-artifact_prefix={folder / 'found-'}", str(folder / "corpus"),
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], read)
    atheris.Fuzz()


main()
