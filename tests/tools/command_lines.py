"""Every ``logdirctl …`` in a text, judged by the real parser.

A line that begins with ``next:`` is a whole command. Elsewhere what stands behind ``logdirctl`` is read as far as it is
a command: words of commands, then options and what looks like no prose. What such a mention leaves out is filled in.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from functools import cache

from tools.cli.usage import UsageError
from tools.logdirctl.main import build_parser

_MENTION = re.compile(r"(?<![\w./-])logdirctl(?=[ \t]+[a-z-])")
_ENDS = re.compile(r"[;,()`…|<>#\n\"]|\s{2,}|: |\. |\.$|$")
CONTINUED = re.compile(r" \\\n\s+")
"""Where a command goes on in the next line."""
_OVERRIDE = re.compile(r"--even-|--confirm|--insist|--now\b")
_WORD = re.compile(r"[a-z][a-z.'’]*")
_PLACEHOLDERS = {"ls | restore | adopt": "ls"}


@cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    return build_parser()


def next_lines(text: str) -> Iterator[str]:
    """Yield what is proposed as the next command, without ``logdirctl``."""
    for line in text.splitlines():
        found = re.match(r"next: (?:.*\band type: )?logdirctl (.*)", line.strip())
        if found is not None:
            yield found[1]


def mentions(text: str) -> Iterator[str]:
    """Yield what stands behind ``logdirctl`` in prose, up to where the command ends."""
    for found in _MENTION.finditer(text):
        rest = text[found.end() :].lstrip(" \t")
        yield rest[: _ENDS.search(rest).start()]  # type: ignore[union-attr] # the end of the text ends it, too


def check(words: list[str]) -> None:
    """Parse a whole command.

    Raises:
        UsageError: it does not fit.
        SystemExit: it asks for help.
    """
    parser().parse_args(words)


def require_next(line: str) -> None:
    """Parse a ``next:`` line; it carries no override.

    Raises:
        AssertionError: it does not parse, or carries one.
    """
    assert not _OVERRIDE.search(line), f"an override in a next line: {line}"
    try:
        check(shlex.split(line))
    except (UsageError, ValueError) as error:
        raise AssertionError(f"next: logdirctl {line}: {error}") from error


def require_mention(text: str) -> None:
    """Parse what prose says of a command; what is missing is filled in.

    Raises:
        AssertionError: there is no such command or option.
    """
    words = text.split()
    if words[:1] == ["--help"] or words[:1] == ["--version"]:
        return
    at = parser()
    taken: list[str] = []
    while (below := _below(at)) is not None:
        if not words or not words[0].strip("X"):
            return  # a group of commands: there is one
        if words[0] == "--help":
            return
        name = words.pop(0)
        assert name in below, f"logdirctl {text}: {at.prog} has no {name}"
        taken.append(name)
        at = below[name]
    if "--help" in words:
        return
    while words and not _WORD.fullmatch(words[0]):
        word = words.pop(0).strip("'\"")
        if not word.strip("X") or word.startswith("$"):
            continue  # what a source puts in at run time, or a shell: a broker, a selector, a source
        taken.append(word)
        if taken[-1] in at._option_string_actions and at._option_string_actions[taken[-1]].nargs is None and words:
            taken.append(words.pop(0).strip("'\""))
    for _ in range(6):
        try:
            check(taken)
        except UsageError as error:
            missing = error.problem.path if error.problem.found == "none" else ""
            if not missing:
                raise AssertionError(f"logdirctl {text}: {error}") from error
            taken += _filled(missing)
        else:
            return
    raise AssertionError(f"logdirctl {text}: {taken}")


def _filled(missing: str) -> list[str]:
    found = []
    if "--socket" in missing:
        return ["--socket", "/s"]
    for name in missing.replace(",", "").split():
        if name == "--log-dirs" or (name.startswith("--") and "--log-dirs" in missing):
            return ["--log-dirs", "/d"]
        option = name.partition("/")[2] or name
        found += [option, "metadata:" if option == "--from" else "1"] if option.startswith("-") else ["X"]
    return found


def leaf_commands(at: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield every command that is no group of commands: its words, and its parser."""
    below = _below(at)
    if below is None:
        yield name, at
        return
    for word, parser_of in below.items():
        yield from leaf_commands(parser_of, f"{name} {word}".lstrip())


def _below(at: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser] | None:
    for action in at._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return None


def require_parsable(text: str) -> None:
    """Judge every ``next:`` line and every mention of a text.

    Raises:
        AssertionError: one is no command.
    """
    for line in next_lines(text):
        require_next(line)
    text = CONTINUED.sub(" ", text)
    for found in mentions("\n".join(line for line in text.splitlines() if not line.strip().startswith("next:"))):
        require_mention(found)
