"""Where things are: the project, the measured data, the documentation, and the datasets."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
DOCS = ROOT / "docs"
DATA = Path(os.environ.get("STEA_DATA", ROOT.parent / "shared" / "data"))
