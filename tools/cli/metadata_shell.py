"""``logdirctl metadata shell`` on a terminal or a pipe: a prompt, the keys of readline, one line per error.

Not here: the commands of the shell (``logdir.metadata.shell``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, TextIO

from logdir.metadata.nodes import Line, Missed
from logdir.service.metadata import MetadataSession
from logdir.text import printable
from tools.cli.streams import original

PROMPT: Final = ">> "
_WELCOME: Final = "Welcome to the metadata shell; 'help' lists the commands, 'exit' leaves."


def put(line: Line, name: str, out: TextIO, err: TextIO) -> bool:
    """Print one line of the output of a shell command (``name``); return ``False`` if the line is an error."""
    if isinstance(line, Missed):
        out.flush()
        path = printable(line.path)
        err.write(f"{name}: {line.why}\n" if path == name else f"{name}: {path}: {line.why}\n")
        err.flush()
        return False
    out.write(f"{line}\n")
    return True


def talk(shell: MetadataSession, source: TextIO, out: TextIO, err: TextIO) -> bool:
    """Run the commands of the metadata shell until ``exit`` or the end of the input.

    Args:
        shell: The metadata that was read, which answers the commands.
        source: Where lines come from; a terminal gets a prompt, the keys of readline, and may interrupt a command.
        out: For output.
        err: For errors.

    Returns:
        Whether no command failed.
    """
    is_terminal = source.isatty() and out.isatty()
    if is_terminal:
        out.write(f"{_WELCOME}\n")
    ask = _reader(shell, source, out, is_terminal=is_terminal)
    is_well = True
    while not shell.is_over:
        try:
            line = ask()
            if line is None:
                break
            name = (line.split() or [""])[0]
            for one in shell.run(line, terminal_width(out)):
                is_well = put(one, printable(name), out, err) and is_well
            out.flush()
        except KeyboardInterrupt:
            if not is_terminal:
                raise
            out.write("\n")  # the line is given up, not the session
    return is_well


def _reader(shell: MetadataSession, source: TextIO, out: TextIO, *, is_terminal: bool) -> Callable[[], str | None]:
    import sys

    if is_terminal and source is sys.stdin and original(out) is sys.stdout:
        _set_up_readline(shell)

        def ask_terminal() -> str | None:
            try:
                return input(PROMPT)
            except EOFError:
                out.write("\n")
                return None

        return ask_terminal

    def ask() -> str | None:
        if is_terminal:
            out.write(PROMPT)
            out.flush()
        line = source.readline()
        return line.rstrip("\r\n") if line else None

    return ask


def _set_up_readline(shell: MetadataSession) -> None:
    """Switch on line editing, completion, and a history that is not saved to a file."""
    try:
        import readline
    except ImportError:
        return
    found: list[str] = []

    def complete(word: str, state: int) -> str | None:
        if state == 0:
            found[:] = shell.complete(readline.get_line_buffer()[: readline.get_endidx()], word)
        return found[state] if state < len(found) else None

    readline.clear_history()
    readline.set_completer_delims(" \t\n")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")


def terminal_width(out: TextIO) -> int | None:
    """Return the width of the terminal in columns; ``None``: ``out`` is no terminal."""
    try:
        return os.get_terminal_size(out.fileno()).columns if out.isatty() else None
    except (OSError, ValueError):  # no terminal after all
        return None
