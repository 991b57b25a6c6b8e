"""`stea-fast completion`: commands and options for the shell's completion."""

from __future__ import annotations

import argparse

from stea_fast.cli.console import Console
from stea_fast.cli.exit_codes import OK

HELP = "print a completion script for bash or zsh"
EXAMPLES = """examples:
  stea-fast completion bash > ~/.local/share/bash-completion/completions/stea-fast
  stea-fast completion zsh > ~/.zfunc/_stea-fast"""

_BASH = """_stea_fast() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{commands}"
  elif [[ "$word" == -* ]]; then
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [ -n "$words" ] || COMPREPLY=($(compgen -f -- "$word"))
}}
complete -o filenames -F _stea_fast stea-fast
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=("bash", "zsh"))


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Print the script."""
    from stea_fast.cli.main import subparsers

    commands = subparsers()
    cases = "\n".join(f'      {name}) words="{" ".join(_options(parser))}" ;;' for name, parser in commands.items())
    script = _BASH.format(commands=" ".join(commands), cases=cases)
    if arguments.shell == "zsh":  # zsh runs completions of bash
        script = "#compdef stea-fast\nautoload -U +X bashcompinit && bashcompinit\n" + script
    console.result({"shell": arguments.shell, "script": script}, script)
    return OK


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return sorted(option for action in parser._actions for option in action.option_strings if option.startswith("--"))
