"""Digests of everything the public calls give on fixed inputs: whether a change left every bit as it was.

python -m bench.kernels.digests --write FILE [--only PART]      run every entry, and record its digests
python -m bench.kernels.digests --compare FILE [--only PART]    run again and name what differs: exit code 1

Bits depend on the machine and on versions of libraries, so both runs belong on one machine. Everything runs on one
thread. `--only` takes the entries with this in their name. A dataset that is not on this machine is left out, and said.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.lib.processes import limit_threads

Entry = Mapping[str, str]  # a digest for every array, by the array's path in the result
FAILED = "failed"  # the key of an entry whose call raised something


def differences(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> Iterator[str]:
    """One sentence for every entry that is not the same in both; entries of one side only are different, too.

    Arrays are compared by their bits: one that only got another name, or stands elsewhere in the result, is the same.
    """
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield f"{name}: not in the file"
        elif name not in after:
            yield f"{name}: in the file, but not run"
        elif Counter(before[name].values()) != Counter(after[name].values()):
            yield f"{name}: {_what_differs(before[name], after[name])}"
        elif FAILED in after[name]:
            yield f"{name}: fails, as in the file: {after[name][FAILED]}"


def _what_differs(before: Entry, after: Entry) -> str:
    if FAILED in after:
        return f"fails: {after[FAILED]}"
    if FAILED in before:
        return f"failed in the file: {before[FAILED]}"
    arrays = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return f"{len(arrays)} of {len(before.keys() | after.keys())} arrays differ: {', '.join(arrays)}"


def _run(only: str) -> dict[str, Entry]:
    """The digests of every entry with `only` in its name; a call that raises an error has the error instead."""
    from bench.kernels.digest_entries import digests, entries

    found: dict[str, Entry] = {}
    for name, call in entries():
        if only not in name:
            continue
        print(f"  {name}", file=sys.stderr, flush=True)
        try:
            found[name] = digests(call())
        except Exception as error:  # the other entries are worth knowing, too
            found[name] = {FAILED: f"{type(error).__name__}: {error}"}
    return found


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", type=Path, metavar="FILE", help="record the digests")
    what.add_argument("--compare", type=Path, metavar="FILE", help="compare with recorded digests")
    parser.add_argument("--only", default="", metavar="PART", help="the entries with this in their name")
    return parser.parse_args(given)


def main(arguments: list[str] | None = None) -> int:
    given = _arguments(arguments)
    limit_threads(1)  # before NumPy is imported
    from bench.lib.measure import machine_facts

    found = _run(given.only)
    if not found:
        print("no entry has this in its name", file=sys.stderr)
        return 2
    if given.write:
        report = {"machine": machine_facts(), "entries": found}
        given.write.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        failures = [name for name, entry in found.items() if FAILED in entry]
        print(f"{len(found)} entries written, {len(failures)} of them failures: {', '.join(failures) or 'none'}")
        return 1 if failures else 0
    recorded = json.loads(given.compare.read_text(encoding="utf-8"))["entries"]
    recorded = {name: entry for name, entry in recorded.items() if given.only in name}
    different = list(differences(recorded, found))
    print("\n".join(different))
    print(f"{len(different)} of {len(recorded.keys() | found.keys())} entries differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
