"""How commands end."""

from __future__ import annotations

OK, BAD_INPUT, BAD_USAGE, CANNOT_WRITE, MISSING_PACKAGE, AUDIT_FAILED, OUT_OF_MEMORY, NO_START = range(8)
INTERRUPTED, TERMINATED = 130, 143
EXPLAINED = """exit codes:
  0    done
  1    the input cannot be used: a file is missing, malformed or empty
  2    the command line is wrong
  3    the output cannot be written; what was there before is untouched
  4    an optional package is missing; the message is the command that installs it
  5    an audit failed: the run depends on test links
  6    there is not enough memory
  7    there is nothing to start from: no seeds are given, and nothing connects the graphs
  130  interrupted; 143 terminated; nothing half-written is left"""
MEMORY_ADVICE = (
    "earlier results are untouched; leave out literals (--literals drop), take --preset fast and fewer --threads, or a "
    "machine with more memory"
)
