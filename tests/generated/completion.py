"""The completion of bash and zsh: static files, made from the parsers, which start no Python.

They complete commands, options, the words that an option takes, files and directories. For partitions, addresses and
numbers they propose nothing. An override (``--even-…``) is proposed only where one was begun to be typed.

Spec: bash(1) "Programmable Completion"; zshcompsys(1) "_arguments".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.generated.commands import Argument, Command, every_command, logdirctl, logdird
from tests.generated.marked import write_all

HOME: Final = Path(__file__).parents[2] / "tools" / "completion"
OVERRIDE: Final = "--even-"
OF_FILES: Final = frozenset({"FILE", "FLEET", "FLEET|SNAPSHOT", "PATH", "PLAN"})
OF_DIRS: Final = frozenset({"DIR", "FORMER", "SNAPSHOT"})
OF_LISTS: Final = frozenset({"A,B"})
"""Directories, separated by commas."""
OF_NOTHING: Final = frozenset({
    "", "EPOCH", "GLOB", "N", "NAME", "OFFSET", "SECONDS", "SELECTOR", "SLUG", "TEXT", "TIME", "TOPIC", "URI", "URL",
    "VERSION",
})  # fmt: skip
"""What each metavar stands for; every one that a parser has is in one of these sets."""
_NO_FILES: Final = frozenset({"path"})
"""Arguments that are no path of a file: one in the tree of the metadata log."""
_HEAD: Final = "made by python -m tests.generated: change what it is made from, not this file."


def kind_of(one: Argument) -> str:
    """Return what an argument takes: ``files``, ``dirs``, ``lists``, ``words``, ``nothing``; ``flag``: no value."""
    if one.names and not one.metavar:
        return "flag"
    if one.choices:
        return "words"
    if one.metavar in OF_FILES and one.dest not in _NO_FILES:
        return "files"
    return "dirs" if one.metavar in OF_DIRS else "lists" if one.metavar in OF_LISTS else "nothing"


# bash


_BASH: Final = """\
# Completion of logdirctl and logdird for bash 4.4 or later, {head}
# Install it as logdirctl, and once more as logdird, in the directory of completions (bash-completion finds it there by
# the name of the command), or read it in by hand: . logdirctl.bash

_logdird_paths() {{
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}}

_logdird_words() {{
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}}

_logdird_list() {{
    local before=
    [[ $1 == *,* ]] && before=${{1%,*}},
    compopt -o nospace 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -d -P "$before" -- "${{1##*,}}")
}}

_logdirctl() {{
    local command=${{1##*/}} current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
    local below= options= overrides= files= dirs= lists= nothing= takes= word i
    COMPREPLY=()
    # bash takes --option=value apart at the equals sign.
    if [[ $current == '=' ]]; then
        current=
    elif [[ $before == '=' ]]; then
        before=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        case "$command $word" in
{paths}
            command="$command $word"
            ;;
        esac
    done
    case $command in
{tables}
    *) return ;;
    esac
    case "$command $before" in
{words}
    esac
    if [[ $before == -* ]]; then
        case " $files " in *" $before "*) _logdird_paths -f "$current"; return ;; esac
        case " $dirs " in *" $before "*) _logdird_paths -d "$current"; return ;; esac
        case " $lists " in *" $before "*) _logdird_list "$current"; return ;; esac
        case " $nothing " in *" $before "*) return ;; esac
    fi
    if [[ $current == --ev* ]]; then
        _logdird_words "$overrides" "$current"
    elif [[ $current == -* ]]; then
        _logdird_words "$options" "$current"
    elif [[ -n $below ]]; then
        _logdird_words "$below" "$current"
    elif [[ $takes == files ]]; then
        _logdird_paths -f "$current"
    elif [[ $takes == dirs ]]; then
        _logdird_paths -d "$current"
    fi
}}

complete -F _logdirctl logdirctl logdird
"""


def bash() -> str:
    """Return the file for bash."""
    commands = [*every_command(logdirctl()), *every_command(logdird())]
    paths = [" ".join(one.words) for one in commands if len(one.words) > 1]
    words = [
        f"    '{' '.join(one.words)} {name}') _logdird_words '{' '.join(argument.choices)}' \"$current\"; return ;;"
        for one in commands
        for argument in one.arguments
        if kind_of(argument) == "words"
        for name in argument.names
    ]
    return _BASH.format(
        head=_HEAD,
        paths=" | \\\n".join(f"        '{path}'" for path in paths) + ")",
        tables="\n".join(line for one in commands for line in _bash_table(one)),
        words="\n".join(words),
    )


def _bash_table(command: Command) -> Iterator[str]:
    yield f"    '{' '.join(command.words)}')"
    if command.below:
        yield f"        below='{' '.join(one.words[-1] for one in command.below)}'"
    names = [name for one in command.arguments for name in one.names]
    for variable, is_override in (("options", False), ("overrides", True)):
        found = [name for name in names if name.startswith("--") and name.startswith(OVERRIDE) is is_override]
        if found:
            yield f"        {variable}='{' '.join(found)}'"
    for kind in ("files", "dirs", "lists", "nothing"):
        found = [name for one in command.arguments if kind_of(one) == kind for name in one.names]
        if found:
            yield f"        {kind}='{' '.join(found)}'"
    takes = [kind for one in command.arguments if not one.names and (kind := kind_of(one)) in ("files", "dirs")]
    if takes:
        yield f"        takes={takes[0]}"
    yield "        ;;"


# zsh


_ZSH: Final = """\
#compdef logdirctl logdird
# Completion of logdirctl and logdird for zsh, {head}
# Install it as _logdirctl in a directory of $fpath.

{functions}
_logdirctl() {{
    case $service in
    logdird) _logdird_0 ;;
    *) _logdirctl_0 ;;
    esac
}}

_logdirctl "$@"
"""
_ZSH_KINDS: Final = {
    "files": "_files",
    "dirs": "_files -/",
    "lists": "_sequence _files -/",
    "nothing": " ",
}


def zsh() -> str:
    """Return the file for zsh."""
    functions = [line for top in (logdirctl(), logdird()) for line in _zsh_function(top)]
    return _ZSH.format(head=_HEAD, functions="\n".join(functions))


def _zsh_name(command: Command) -> str:
    top, *words = command.words
    return f"_{'_'.join((top, *words))}" if words else f"_{top}_0"


def _zsh_function(command: Command) -> Iterator[str]:
    for one in command.below:
        yield from _zsh_function(one)
    specs = [spec for one in command.arguments if one.names for spec in _zsh_specs(one)]
    yield f"{_zsh_name(command)}() {{"
    if not command.below:
        specs += _zsh_places(command.arguments)
        yield "    _arguments -s -S \\"
        yield from _continued(specs)
        yield from ("}", "")
        return
    yield "    local curcontext=$curcontext state line"
    yield "    local -a below"
    yield "    _arguments -C \\"
    yield from _continued([*specs, "'1: :->command'", "'*:: :->rest'"])
    yield "    case $state in"
    yield "    command)"
    yield "        below=("
    for one in command.below:
        yield f"            {_quoted(f'{one.words[-1]}:{one.summary}')}"
    yield "        )"
    yield "        _describe -t commands command below"
    yield "        ;;"
    yield "    rest)"
    yield "        case $words[1] in"
    for one in command.below:
        yield f"        {one.words[-1]}) {_zsh_name(one)} ;;"
    yield from ("        esac", "        ;;", "    esac", "}", "")


def _continued(specs: Sequence[str]) -> Iterator[str]:
    for number, spec in enumerate(specs, 1):
        yield f"        {spec}{' ' + chr(92) if number < len(specs) else ''}"


def _zsh_specs(one: Argument) -> Iterator[str]:
    """Yield the specification of each name of an option."""
    others = [*one.names, *(name for name in one.others if name not in one.names)]
    excluded = "" if one.is_repeated or len(others) == 1 else f"({' '.join(others)})"
    repeated = "*" if one.is_repeated else ""
    for name in one.names:
        mark = "" if not one.metavar else "=" if name.startswith("--") else "+"
        value = f":{_plain(one.metavar)}:{_zsh_action(one)}" if one.metavar else ""
        yield _quoted(f"{repeated}{excluded}{name}{mark}[{_plain(one.text)}]{value}")


def _zsh_places(arguments: Sequence[Argument]) -> Iterator[str]:
    """Yield the specification of each argument without a flag."""
    for one in arguments:
        if not one.names:
            place = "*" if one.is_repeated else ":" if one.is_required else "::"
            place = f"{place}:" if one.is_repeated else place
            yield _quoted(f"{place}{_plain(one.metavar)}:{_zsh_action(one)}")


def _zsh_action(one: Argument) -> str:
    kind = kind_of(one)
    return f"({' '.join(one.choices)})" if kind == "words" else _ZSH_KINDS[kind]


def _plain(text: str) -> str:
    """Return a text in which nothing ends a specification."""
    for mark in ("\\", "[", "]", ":"):
        text = text.replace(mark, f"\\{mark}")
    return text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


FILES: Final[dict[Path, Callable[[], str]]] = {HOME / "logdirctl.bash": bash, HOME / "_logdirctl": zsh}


def write() -> str:
    """Write all of it again; return the names of the files."""
    return write_all(FILES)
