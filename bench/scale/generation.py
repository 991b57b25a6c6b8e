"""Time and peak memory of making a synthetic pair, in a process of its own that does nothing else.

    python -m bench.scale.generation [--entities 5000000] [--profiles dbp1m,dense] [--names]

For every profile: seconds, the memory of the pair's arrays, the largest memory of the process, and a checksum of the
graphs, by which two versions of the generator can be compared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import zlib
from time import perf_counter
from typing import Any

from bench.lib.processes import environment, module_command

NAME_NOISE = 0.1


def measure(entities: int, profile: str, names: bool) -> dict[str, Any]:
    """In the fresh process: one pair."""
    import stea_fast as sf
    from stea_fast._util import memory

    before, begin = memory.resident(), perf_counter()
    pair = sf.synthetic_pair(entities, seed=0, profile=profile, name_noise=NAME_NOISE if names else None)
    seconds, peak, held = perf_counter() - begin, memory.peak(), memory.resident() - before
    checksum = 0
    for array in (pair.kg1.edges, pair.kg1.indptr, pair.kg2.edges, pair.kg2.indptr, pair.train):
        checksum = zlib.crc32(array, checksum)
    return {
        "profile": profile,
        "triples": pair.kg1.num_triples + pair.kg2.num_triples,
        "seconds": seconds,
        "pair_gb": held / 1e9,
        "peak_gb": peak / 1e9,
        "checksum": f"{checksum:08x}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=5_000_000)
    parser.add_argument("--profiles", default="dbp1m,dense", help="profiles, with commas")
    parser.add_argument("--names", action="store_true", help="entities have names")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.entities, given.one, given.names)))
        return
    for profile in given.profiles.split(","):
        options = ["--entities", str(given.entities), "--one", profile, *(["--names"] if given.names else [])]
        command = module_command("bench.scale.generation", *options)
        done = subprocess.run(command, env=environment(), check=True, stdout=subprocess.PIPE, text=True)
        line = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{given.entities:,} entities, {line['profile']}: {line['triples']:,} triples in {line['seconds']:.0f} s, "
            f"{line['pair_gb']:.2f} GB are left of it, {line['peak_gb']:.2f} GB at most, checksum {line['checksum']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
