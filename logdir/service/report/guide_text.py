"""The guide through an adoption as text: lines of at most 80 columns where no word is longer.

A command stands behind its text if both fit into one line, else below it, broken between words as a shell reads them.

Not here: the steps (``decide.staged.guide``).

Spec: design §6.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from logdir.decide.staged.guide import GuideStep

_COLUMNS: Final = 80
_BREAK: Final = " \\"
"""Ends a line of a command that the next line continues."""
_WORDS: Final = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"])+""")
"""Words of a shell, each with its quotes."""


def guide_lines(steps: Sequence[GuideStep]) -> tuple[str, ...]:
    """Return the lines of a guide; empty if it has no step."""
    return tuple(line for step, one in _numbered(steps) for line in _shown(step, one))


def _numbered(steps: Sequence[GuideStep]) -> Iterator[tuple[str, GuideStep]]:
    """Yield each line of a guide with what stands before it: the number of a step before its first line only."""
    last = 0
    for one in steps:
        yield "   " if one.step == last else f"{one.step}. ", one
        last = one.step


def _shown(before: str, one: GuideStep) -> Iterator[str]:
    line = f"{before}{one.text}"
    if one.command is not None and len(line) + 1 + len(one.command) <= _COLUMNS:
        yield f"{line} {one.command}"
        return
    yield from textwrap.wrap(line, _COLUMNS, subsequent_indent="   ", break_long_words=False, break_on_hyphens=False)
    if one.command is not None:
        yield from _command_lines(one.command)


def _command_lines(command: str) -> Iterator[str]:
    line = "    "
    for words in _kept_together(_WORDS.findall(command)):
        if line.strip() and len(line) + 1 + len(words) + len(_BREAK) > _COLUMNS:
            yield f"{line}{_BREAK}"
            line = "      "
        line = f"{line} {words}"
    yield line


def _kept_together(words: Sequence[str]) -> list[str]:
    """Return the words of a command, an option with its value and a redirection with its file as one."""
    found: list[str] = []
    for word in words:
        last = found[-1] if found else ""
        is_value = last in ("-o", ">") or (last.startswith("--") and " " not in last and word[0] not in "->$")
        if is_value:
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found
