"""One self-contained HTML page about an alignment: no network, no other file, readable on a phone."""

from __future__ import annotations

import os
from pathlib import Path

from stea_fast._util.atomic import replacing
from stea_fast.alignment.report.content import ReportContent
from stea_fast.alignment.report.page import render

__all__ = ["ReportContent", "write_report"]


def write_report(content: ReportContent, path: str | os.PathLike[str]) -> None:
    """Write the page, whole or not at all."""
    page = render(content).encode("utf-8", "replace")  # a lone surrogate cannot be written
    with replacing(Path(path)) as stream:
        stream.write(page)
