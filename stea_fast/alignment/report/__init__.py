"""One self-contained HTML page about an alignment: no network, no other file, readable on a phone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from stea_fast._util.atomic import replacing
from stea_fast.alignment.report.page import render

if TYPE_CHECKING:
    from stea_fast.alignment.api import Alignment


def write_report(alignment: Alignment, path: str | os.PathLike[str]) -> None:
    """Write the page, whole or not at all."""
    content = render(alignment).encode()
    with replacing(Path(path)) as stream:
        stream.write(content)
