"""`kubebeast completion`: prints the script with which a shell completes commands and flags."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from kubebeast_common.cli.command import Command, find_commands
from kubebeast_common.cli.help.documentation import settings_of

_BASH = """\
# kubebeast completion bash: in ~/.bashrc, source <(kubebeast completion bash)
_kubebeast() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} choices
  if ((COMP_CWORD == 1)); then
    choices={commands}
  else
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$choices" -- "$word"))
}}
complete -o default -F _kubebeast kubebeast
"""
_ZSH = """\
# kubebeast completion zsh: in ~/.zshrc, source <(kubebeast completion zsh)
autoload -U +X compinit bashcompinit && compinit && bashcompinit
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompletionConfig:
    """Settings of `kubebeast completion`."""

    shell: Annotated[tyro.conf.Positional[Literal["bash", "zsh", "fish"]], tyro.conf.arg(metavar="SHELL")]
    """Shell to complete for: bash, zsh or fish."""


COMMANDS = {
    "completion": Command(
        summary="Print a shell script that completes commands and flags.",
        examples=["bash"],
        config_type=CompletionConfig,
        target="kubebeast_common.cli.completion:run",
    )
}


def run(config: CompletionConfig) -> int:
    """Runs the command. Returns the exit status."""
    print(script(config.shell), end="")
    return 0


def script(shell: str) -> str:
    """Returns the script for `shell`: bash, zsh or fish."""
    words = {name: _words(name) for name in find_commands() if " " not in name}
    if shell == "fish":
        return _fish(words)
    cases = "\n".join(f"      {name}) choices={shlex.quote(' '.join(found))} ;;" for name, found in words.items())
    bash = _BASH.format(commands=shlex.quote(" ".join(words)), cases=cases)
    return _ZSH + bash.partition("\n")[2] if shell == "zsh" else bash


def _words(command: str) -> list[str]:
    """Returns the flags of a command, and the second words of the commands that begin with it."""
    further = [name.removeprefix(f"{command} ") for name in find_commands() if name.startswith(f"{command} ")]
    names = [command, *(f"{command} {word}" for word in further)]
    settings = [setting for name in names for setting in settings_of(find_commands()[name].config_type)]
    flags = [setting.flag for setting in settings if not setting.is_positional]
    sources = ["--config", "--recipe"] if find_commands()[command].has_sources else []
    return [*further, *dict.fromkeys([*flags, *sources, "--help"])]


def _fish(words: Mapping[str, list[str]]) -> str:
    lines = ["# kubebeast completion fish: in ~/.config/fish/config.fish, kubebeast completion fish | source"]
    for name, found in words.items():
        summary = shlex.quote(find_commands()[name].summary)
        lines.append(f"complete -c kubebeast -n __fish_use_subcommand -a {name} -d {summary}")
        condition = f"-n '__fish_seen_subcommand_from {name}'"
        for word in found:
            option = f"-l {word.removeprefix('--')}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c kubebeast {condition} {option}")
    return "\n".join(lines) + "\n"
