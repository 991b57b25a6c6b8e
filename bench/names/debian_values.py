"""Debian by values alone: no seeds, no package names; precision and recall of the packages that have values."""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import stea_fast as sf
from bench.lib.folders import DATA
from stea_fast.data.sealed import reveal

THRESHOLDS = (0.3, 0.5, 0.7, 0.9, 0.95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="structural")
    arguments = parser.parse_args()
    began = time.perf_counter()
    pair = sf.load_pair(DATA / "debian_bookworm_trixie", seed_fraction=0.0)
    clues = sf.find_clues(pair, names=False)
    print(*clues.found, sep="\n")
    alignment = sf.align(pair, preset=arguments.preset, clues=clues, calibration="holdout", progress=False)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{time.perf_counter() - began:.0f} s with reading, {memory:.2f} GB at most")
    print(alignment.calibrator.note)
    judge(pair, alignment)


def judge(pair: sf.Pair, alignment: sf.Alignment) -> None:
    """Print precision, among all sources with values and among those with a link, and recall of the linked ones."""
    links = np.asarray(reveal(pair.test))
    assert pair.kg1.attributes is not None and pair.kg2.attributes is not None
    valued1, valued2 = (np.diff(kg.attributes.indptr) > 0 for kg in (pair.kg1, pair.kg2))
    wanted = links[valued1[links[:, 0]] & valued2[links[:, 1]], 0]
    truth, found = np.full((2, pair.kg1.num_entities), -1)
    probs = np.zeros(len(truth))
    truth[links[:, 0]] = links[:, 1]
    table = alignment.links
    found[table.sources], probs[table.sources] = table.considered, np.nan_to_num(table.considered_probs)
    for threshold in THRESHOLDS:
        given = (probs >= threshold) & valued1
        right = given & (found == truth) & (found >= 0)
        precision, of_linked = right.sum() / given.sum(), right.sum() / (given & (truth >= 0)).sum()
        recall = right[wanted].mean()
        print(f"p >= {threshold}: precision {precision:.3f}, of linked {of_linked:.3f}, recall {recall:.3f}")


if __name__ == "__main__":
    main()
