"""What commands say: notes and errors for the user, and the result."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stea_fast._util.printable import printable, printable_json
from stea_fast.formats.triples import Problems
from stea_fast.formats.value_pool import LONGEST_VALUE
from stea_fast.selftraining.checkpoint import LOGGER as CHECKPOINT_LOGGER
from stea_fast.selftraining.planning import LOGGER as PLAN_LOGGER

SHOWN_LOGGERS = (CHECKPOINT_LOGGER, PLAN_LOGGER)


class UsageError(Exception):
    """The command line is wrong in a way that the parser cannot see."""


class Console:
    """Notes for the user on stderr, the result on stdout; names from files cannot do anything to the terminal."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json

    @property
    def progress(self) -> bool:
        """Whether long steps show how far they are: a bar on a terminal, plain lines elsewhere."""
        return not self.quiet

    def note(self, text: str) -> None:
        """Something worth knowing on the way."""
        if not self.quiet:
            print(printable(text), file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """Something that changes what the result is worth: shown with --quiet, too."""
        print(f"warning: {printable(text)}", file=sys.stderr, flush=True)

    @contextmanager
    def showing_log(self) -> Iterator[None]:
        """Show what the package itself has to say: its warnings, its plans, and what it takes from checkpoints."""
        package, handler = logging.getLogger("stea_fast"), _Shown(self)
        shown = [logging.getLogger(name) for name in SHOWN_LOGGERS]
        levels = [each.level for each in shown]
        package.addHandler(handler)
        for each in shown:
            each.setLevel(logging.INFO)
        try:
            yield
        finally:
            package.removeHandler(handler)
            for each, level in zip(shown, levels, strict=True):
                each.setLevel(level)

    def problems(self, problems: Problems, what: str) -> None:
        """How much was left out, and the first few cases."""
        if problems.count:
            self.warn(f"{problems.count:,} {what} left out (--strict stops at the first), such as")
            for text in problems.first:
                print(f"  {text}", file=sys.stderr, flush=True)
        if problems.dropped_literals:
            self.note(f"{problems.dropped_literals:,} triples with literals left out (--literals values reads them)")
        if problems.unusable_values:
            self.note(
                f"{problems.unusable_values:,} values left out: blank, of an unknown type, or of more than "
                f"{LONGEST_VALUE:,} bytes"
            )

    def result(self, facts: dict[str, Any], text: str) -> None:
        """The outcome: text, or with --json one object."""
        if self.as_json:
            print(printable_json(json.dumps(facts, indent=2, ensure_ascii=False)))
        else:
            print(printable(text))


class _Shown(logging.Handler):
    """Log records as notes and warnings."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.INFO)
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        if record.levelno >= logging.WARNING:
            self.console.warn(record.getMessage())
        elif record.name in SHOWN_LOGGERS:
            self.console.note(record.getMessage())


def print_error(text: object) -> None:
    """One line that says what to do."""
    print(f"error: {printable(' '.join(str(text).split()))}", file=sys.stderr)
