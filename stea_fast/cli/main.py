"""The command line, `stea-fast` or `python -m stea_fast`: the table of commands, and what their errors become."""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from types import FrameType, ModuleType

from stea_fast import __version__
from stea_fast._util.atomic import OutputError
from stea_fast.cli import exit_codes
from stea_fast.cli.console import Console, UsageError, print_error
from stea_fast.clues.types import NoStartError
from stea_fast.formats.triples import MissingExtraError

THREAD_VARIABLES = (
    "STEA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip
COMMANDS = ("align", "refine", "evaluate", "explain", "convert", "audit", "info", "demo", "bench", "completion")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    arguments = make_parser().parse_args(words)
    arguments.command_line = shlex.join(["stea-fast", *words])
    if arguments.threads is not None:
        _limit_threads(arguments.threads, words if argv is None else None)
    command = _module(arguments.command)
    console = Console(quiet=arguments.quiet, as_json=arguments.json)
    previous = signal.signal(signal.SIGTERM, _terminate)  # so that what is written aside is removed
    try:
        with console.showing_log():
            return command.run(arguments, console)
    except UsageError as error:
        print_error(error)
        return exit_codes.BAD_USAGE
    except OutputError as error:
        print_error(error)
        return exit_codes.CANNOT_WRITE
    except (MissingExtraError, ModuleNotFoundError) as error:
        print_error(error)
        return exit_codes.MISSING_PACKAGE
    except BrokenPipeError:  # whoever read our output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.OK
    except OSError as error:
        print_error(f"{error.filename or ''}: {error.strerror}" if error.strerror else error)
        return exit_codes.BAD_INPUT
    except NoStartError as error:
        print_error(error)
        return exit_codes.NO_START
    except (ValueError, TypeError, RuntimeError) as error:
        print_error(error)
        return exit_codes.BAD_INPUT
    except MemoryError as error:
        print_error(f"not enough memory{f' ({error})' if str(error) else ''}; {exit_codes.MEMORY_ADVICE}")
        return exit_codes.OUT_OF_MEMORY
    except KeyboardInterrupt:
        print_error("interrupted; earlier results are untouched")
        return exit_codes.INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, previous)


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="stea-fast", description="Entity alignment: from two graphs and a few links to links for every entity.",
        epilog=exit_codes.EXPLAINED, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"stea-fast {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        module = _module(name)
        command = commands.add_parser(
            name, help=module.HELP, description=module.HELP, epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        module.add_arguments(command)
        command.add_argument("--threads", type=int, metavar="N", help="CPU threads to use (default: all)")
        command.add_argument("--json", action="store_true", help="the result as JSON on stdout")
        command.add_argument("--quiet", action="store_true", help="no notes and no progress on stderr")
    return parser


def _limit_threads(count: int, words: list[str] | None) -> None:
    """Let everything use this many threads. BLAS libraries read their number once, so the program starts anew for it.

    Without the words of a command line, where `main` was called by another program, only our own kernels are limited.
    """
    if count < 1:
        raise SystemExit(f"stea-fast: error: --threads must be at least 1, got {count}")
    wanted = dict.fromkeys(THREAD_VARIABLES, str(count))
    if all(os.environ.get(name) == value for name, value in wanted.items()):
        return
    os.environ.update(wanted)
    if words is not None:
        os.execv(sys.executable, [sys.executable, "-m", "stea_fast", *words])


def subparsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of every command by its name."""
    actions = [action for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(actions[0].choices)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"stea_fast.cli.commands.{name}")


def _terminate(number: int, frame: FrameType | None) -> None:
    sys.exit(exit_codes.TERMINATED)
