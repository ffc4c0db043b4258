"""A page of the docs that is typed as it stands, and whose words are compared with what is printed.

A block ``sh`` is typed; one that cannot be has a comment before it, ``<!-- not typed: WHY -->``. A block ``text`` shows
what the blocks ``sh`` since the last one print: each of its lines is a line of the output, ``…`` standing for anything.
A command ends with status 0 unless a comment behind it names another one, as ``# exit status 1``. One that only looks
may end with 1, too, and is typed again until it shows what the page says, as an operator would.

What only a host has, units and disks, is done by the test in its place (``actions``).
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

HOME: Final = Path(__file__).parents[1]
_FENCE: Final = re.compile(
    r"(?:^<!-- not typed: (?P<why>.+?) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
_ANYTHING: Final = "…"
_PATIENCE_S: Final = 90.0
_LONGEST_S: Final = 150


class Block(NamedTuple):
    """A block of code of a page."""

    kind: str
    text: str
    why_not: str
    """Why it is not typed; empty: it is."""


def sections(page: str) -> dict[str, list[Block]]:
    """Return the blocks of each section of a page, by its heading."""
    found: dict[str, list[Block]] = {}
    for part in re.split(r"^## ", page, flags=re.M)[1:]:
        heading, _, text = part.partition("\n")
        found[heading] = [Block(one["kind"], one["text"], one["why"] or "") for one in _FENCE.finditer(text)]
    return found


def settings_of(block: Block) -> dict[str, str]:
    """Return the values that a block sets, by name."""
    lines = (line.partition(" #")[0].strip() for line in block.text.splitlines())
    return {name: shlex.split(value)[0] for name, _, value in (line.partition("=") for line in lines)}


def lines_of(text: str) -> list[str]:
    """Return what is typed, command by command; one that goes on in the next line is one."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [line.rstrip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def only_looks(line: str) -> bool:
    """Whether a command changes nothing."""
    return line.startswith("logdirctl ") and "--apply" not in line


def statuses_of(line: str) -> set[int]:
    """Return the exit statuses with which a command may end."""
    named = re.search(r"#.*\bexit status (\d+)", line)
    return {int(named[1])} if named else {0, 1} if only_looks(line) else {0}


class Host:
    """Where a page is typed: programs on the ``PATH``, the values of its variables, and what the test does itself."""

    def __init__(
        self,
        folder: Path,
        page: Mapping[str, str],
        values: Mapping[str, object],
        actions: Mapping[str, Callable[[], object]],
    ) -> None:
        """Make it.

        Args:
            folder: Made here, for programs and what they write.
            page: The values of the page, by the names of its variables.
            values: Those of the test; ``logdirctl`` and ``logdird`` are on its ``PATH``.
            actions: What is done in place of a line, as ``systemctl stop kafka``.
        """
        self._folder, self._actions = folder, actions
        self._values = {name: str(value) for name, value in values.items()}
        self._shown = {page[name]: value for name, value in self._values.items()}
        (folder / "bin").mkdir(parents=True)
        for name in ("logdirctl", "logdird"):
            code = f"import sys; sys.path.insert(0, {str(HOME)!r}); from tools.entry import {name}; sys.exit({name}())"
            self.add_program(name, sys.executable, "-c", code)
        self._kept = ""

    def add_program(self, name: str, *command: str) -> None:
        """Put a program on the ``PATH``, which gets what is typed behind its name."""
        path = self._folder / "bin" / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        path.chmod(0o755)

    def type_section(self, blocks: Sequence[Block]) -> None:
        """Type the blocks of a section in their order, and compare what they print with what the page shows.

        Raises:
            AssertionError: a command ended with another status, or printed something else.
        """
        at = 0
        while at < len(blocks):
            typed = at
            while at < len(blocks) and blocks[at].kind == "sh":
                at += 1
            seen = [line for one in blocks[at : at + 1] for line in one.text.splitlines() if line.strip()]
            scripts = [one.text for one in blocks[typed:at] if not one.why_not]
            for number, script in enumerate(scripts, 1):
                self._type_until(lines_of(script), seen if number == len(scripts) else ())
            at += 1

    def _type_until(self, lines: Sequence[str], seen: Sequence[str]) -> None:
        is_look = all(map(only_looks, lines))
        until = time.monotonic() + _PATIENCE_S
        while True:
            ended, said = self._type(lines)
            wrong = [
                (line, status) for line, status in zip(lines, ended, strict=True) if status not in statuses_of(line)
            ]
            missing = [line for line in seen if not self._is_shown(line, said)]
            if not wrong and not missing:
                return
            if not is_look or time.monotonic() > until:
                raise AssertionError(f"statuses: {wrong}; not shown: {missing}; but:\n{said}")
            time.sleep(0.3)

    def _is_shown(self, line: str, said: str) -> bool:
        """Whether a line of the page is one of the output; blanks between words are as wide as a table makes them."""
        if self._shown:
            values = "|".join(re.escape(one) for one in sorted(self._shown, key=len, reverse=True))
            line = re.sub(values, lambda found: self._shown[found[0]], line)
        words = " ".join(line.split())
        pattern = re.compile(".*".join(map(re.escape, words.split(_ANYTHING))))
        return any(pattern.fullmatch(" ".join(one.split())) for one in said.splitlines())

    def _type(self, lines: Sequence[str]) -> tuple[list[int], str]:
        """Type commands; return the exit status of each, and all they print."""
        ended: list[int] = []
        said = ""
        part: list[str] = []
        for line in (*lines, ""):
            action = self._actions.get(line.partition("#")[0].strip())
            if line and action is None:
                part.append(line)
                continue
            statuses, printed = self._run(part)
            ended += statuses
            said += printed
            part = []
            if action is not None:
                action()
                ended.append(0)
        return ended, said

    def _run(self, lines: Sequence[str]) -> tuple[list[int], str]:
        if not lines:
            return [], ""
        statuses = self._folder / "statuses"
        statuses.write_text("")
        values = "".join(f"{name}={shlex.quote(value)}\n" for name, value in self._values.items())
        # Each line says how it ended; a shell that is given up half way says too little.
        script = "".join(f"{line}\nprintf '%s\\n' \"$?\" >>{shlex.quote(str(statuses))}\n" for line in lines)
        done = subprocess.run(
            ["sh", "-uc", f"{values}{self._kept}{script}"],
            cwd=self._folder,
            env={**os.environ, "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LONGEST_S,
            check=False,
        )
        # A shell keeps what was set before.
        self._kept += "".join(f"{line}\n" for line in lines if re.match(r"[A-Z]+=", line))
        found = list(map(int, statuses.read_text().split()))
        assert len(found) == len(lines), (lines, found, done.stdout)
        return found, done.stdout
