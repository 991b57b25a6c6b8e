"""The native CPU kernels under AddressSanitizer with UBSan, and under ThreadSanitizer.

`python -m bench.hardening.sanitize --pairs 2000` builds the module `_core` for each sanitizer, beside a copy of the
package, and runs random pairs of graphs x {1, 2, 8} threads x tiers through it; then AddressSanitizer watches every
entry point being called with changed arguments. A report of a sanitizer, a bit that differs, or a crash is a failure.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.lib.builds import BuildFolder
from bench.lib.folders import ROOT
from bench.lib.processes import module_command

COMPILER = "g++"
SANITIZERS = {"asan": "address,undefined,float-cast-overflow", "tsan": "thread"}
RUNTIMES = {
    "asan": ("libasan.so", "libstdc++.so.6"),
    "tsan": ("libtsan.so",),
}  # the first finds __cxa_throw in the second
OPTIONS = {
    # CPython leaks on purpose. What asks for more memory than there is gets none, as it would elsewhere.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
    "PYTHONMALLOC": "malloc",  # so that objects of Python are watched as well
    "OPENBLAS_NUM_THREADS": "1",
}


class SanitizedBuilds(BuildFolder):
    """Copies of the package with a native module built for a sanitizer each."""

    def package(self, sanitizer: str) -> Path:
        """The folder that holds the package `stea_fast`, for PYTHONPATH."""
        return self.target(sanitizer, lambda part: self._build(sanitizer, part))

    def _build(self, sanitizer: str, folder: Path) -> None:
        chosen = {"STEA_SANITIZE": SANITIZERS[sanitizer], "STEA_CUDA": "off", "STEA_REQUIRE_NATIVE": "1"}
        base = self.folder / f"{sanitizer}.objects"
        command = [sys.executable, "setup.py", "--quiet", "build", "--build-base", base, "--build-lib", folder]
        result = subprocess.run(
            command, cwd=ROOT, env={**os.environ, **chosen}, capture_output=True, text=True, check=False
        )
        if result.returncode != 0:
            raise RuntimeError(f"the build for {sanitizer} failed:\n{result.stdout}{result.stderr}")

    def run(self, sanitizer: str, command: list[str]) -> str:
        """What a command of Python says that uses the sanitized module; fails with what the sanitizer says."""
        libraries = [_compiler_says(f"-print-file-name={name}") for name in RUNTIMES[sanitizer]]
        path = os.pathsep.join([str(self.package(sanitizer)), str(ROOT)])
        environment = {**os.environ, **OPTIONS, "LD_PRELOAD": " ".join(libraries), "PYTHONPATH": path}
        result = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        # That so much memory cannot be had is an answer (`allocator_may_return_null`), not a finding.
        said = [line for line in result.stderr.splitlines() if "AddressSanitizer failed to allocate" not in line]
        if result.returncode != 0 or any("Sanitizer" in line or "runtime error" in line for line in said):
            raise SanitizerReport(f"{sanitizer}: {' '.join(command)}\n{result.stdout}{result.stderr}")
        return result.stdout


class SanitizerReport(AssertionError):
    """What a sanitizer found, or how a process ended."""


def graph_pairs(builds: SanitizedBuilds, sanitizer: str, first: int, count: int) -> str:
    """Random pairs of graphs through all kernels, tiers and numbers of threads."""
    return builds.run(sanitizer, module_command("bench.hardening.graph_pairs", "--first", first, "--count", count))


def changed_calls(builds: SanitizedBuilds, first: int, count: int) -> str:
    """Every entry point with changed arguments; a failure names the call."""
    journal = builds.folder / "core_calls.journal"
    options = "--first", first, "--count", count, "--journal", journal
    try:
        return builds.run("asan", module_command("bench.hardening.core_calls", *options))
    except SanitizerReport as report:
        raise SanitizerReport(f"at call {journal.read_text(encoding='utf-8')}{report}") from None


def _compiler_says(option: str) -> str:
    return subprocess.run([COMPILER, option], capture_output=True, text=True, check=True).stdout.strip()


def why_not() -> str | None:
    """Why the sanitizers cannot run here, if so."""
    if sys.platform != "linux" or shutil.which(COMPILER) is None:
        return f"needs Linux and {COMPILER}"
    missing = [
        name for names in RUNTIMES.values() for name in names if "/" not in _compiler_says(f"-print-file-name={name}")
    ]
    return f"{COMPILER} has no {', '.join(missing)}" if missing else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200, help="pairs of graphs for each sanitizer")
    parser.add_argument("--calls", type=int, default=10_000, help="calls with changed arguments")
    parser.add_argument("--first", type=int, default=0, help="number of the first pair and call")
    parser.add_argument("--only", choices=SANITIZERS, help="one of the sanitizers")
    parser.add_argument("--builds", type=Path, help="folder that keeps the builds for the next time")
    arguments = parser.parse_args()
    reason = why_not()
    if reason:
        parser.exit(2, f"sanitize {reason}\n")
    with tempfile.TemporaryDirectory() as temporary:
        builds = SanitizedBuilds((arguments.builds or Path(temporary)).resolve())
        for sanitizer in [arguments.only] if arguments.only else SANITIZERS:
            print(sanitizer, graph_pairs(builds, sanitizer, arguments.first, arguments.pairs), sep=": ", end="")
            if sanitizer == "asan":
                print(sanitizer, changed_calls(builds, arguments.first, arguments.calls), sep=": ", end="")


if __name__ == "__main__":
    main()
