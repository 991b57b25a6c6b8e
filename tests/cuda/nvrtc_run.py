"""Refines a small pair on a GPU that exists in a driver of the tests only; prints what it found.

Usage: nvrtc_run.py DRIVER GUARD
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

ctypes.CDLL(sys.argv[1])  # the loader then takes it for libcuda.so.1
sys.modules["stea_fast._cuda"] = None  # type: ignore[assignment]  # as in a build without a toolkit

import numpy as np  # noqa: E402
from posing import posing_gpus  # noqa: E402

import stea_fast as sf  # noqa: E402
from stea_fast.encoders import demo  # noqa: E402


def main() -> None:
    pair = sf.synthetic_pair(40, seed=1)
    candidates = demo.candidates(pair)
    arguments = {"seeds": pair.train, "method": sf.Product(sweeps=2)}
    wanted = sf.refine(candidates, pair.kg1, pair.kg2, backend="native", **arguments)
    with posing_gpus(Path(sys.argv[2])):
        status = sf.backends()["cuda"]
        found = sf.refine(candidates, pair.kg1, pair.kg2, backend="cuda", **arguments)
    same = np.array_equal(found.pairs, wanted.pairs)
    off = float(np.abs(np.asarray(found.forward.probs) - np.asarray(wanted.forward.probs)).max())
    print(
        json.dumps(
            {"usable": status.usable, "detail": status.detail, "pairs": len(wanted.pairs), "same": same, "off": off}
        )
    )


if __name__ == "__main__":
    main()
