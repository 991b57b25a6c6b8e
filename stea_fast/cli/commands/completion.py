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
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
  # bash takes the sign of --option=value for a word of its own
  [ "$before" = "=" ] && before="${{COMP_WORDS[COMP_CWORD-2]}}"
  [ "$word" = "=" ] && word=""
  case "${{COMP_WORDS[1]}} $before" in
{values}
  esac
  if [ -n "$words" ]; then
    :
  elif [ "$COMP_CWORD" -eq 1 ]; then
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
    values = "\n".join(line for name, parser in commands.items() for line in _values(name, parser))
    script = _BASH.format(commands=" ".join(commands), cases=cases, values=values)
    if arguments.shell == "zsh":  # zsh runs completions of bash
        script = "#compdef stea-fast\nautoload -U +X bashcompinit && bashcompinit\n" + script
    console.result({"shell": arguments.shell, "script": script}, script)
    return OK


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return sorted(option for action in parser._actions for option in action.option_strings if option.startswith("--"))


def _values(command: str, parser: argparse.ArgumentParser) -> list[str]:
    """A case for every option that has a list of values."""
    return [
        f'    "{command} {option}") words="{" ".join(map(str, action.choices))}" ;;'
        for action in parser._actions
        if action.choices is not None
        for option in action.option_strings
    ]
