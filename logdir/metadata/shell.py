"""The commands of the metadata shell: a line in, lines out.

The history of typed lines stays in memory.

Not here: what ``ls`` and the others print (``metadata.nodes``), the terminal (``tools``).

Spec: KIP-631, "kafka-metadata-shell.sh"; org.apache.kafka.shell.InteractiveShell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from logdir.metadata.nodes import LISTERS, Line, Missed, Place, ls
from logdir.metadata.paths import path_of, resolve, shown, words
from logdir.metadata.tree import Directory, Found, children, find
from logdir.text import printable


class Manual(NamedTuple):
    """How a command of the shell is typed and what it does, for ``help`` and ``man``."""

    usage: str
    text: str
    least: int = 0
    """The least number of arguments."""
    most: int | None = None
    """The greatest number of arguments; ``None``: any."""


MANUAL: Final = {
    "cat": Manual("cat PATH...", "Show the value of leaves.", 1),
    "cd": Manual("cd [PATH]", "Go to a directory; without a path to the root.", 0, 1),
    "exit": Manual("exit", "Leave the shell, as the end of the input does.", 0, 0),
    "find": Manual("find [PATH...]", "List nodes and all that is below them."),
    "help": Manual("help", "List the commands.", 0, 0),
    "history": Manual("history [NUMBER]", "Show the lines typed so far; with a number as many of the newest.", 0, 1),
    "ls": Manual("ls [PATH...]", "List what is in directories."),
    "man": Manual("man COMMAND", "Say what a command does.", 1, 1),
    "pwd": Manual("pwd", "Show the path of the working directory.", 0, 0),
    "tree": Manual("tree [PATH...]", "Show nodes, all that is below them, and their values."),
}
_PATHS: Final = """\
A path is absolute or begins in the working directory; .. goes up. *, ?, [a-z] and {a,b} stand for names that fit.
A backslash takes the special meaning from the character behind it, quotes from all that is between them."""


class Shell:
    """One session of the metadata shell: its working directory and its history are all that it changes."""

    def __init__(self, root: Directory, *, width: Callable[[], int | None] = lambda: None) -> None:
        """Begin at the root.

        Args:
            root: The tree.
            width: Returns the columns of the terminal, called for each ``ls``; ``None``: one entry a line.
        """
        self.place = Place(root)
        self.history: list[str] = []
        self.is_over = False
        self._width = width
        self._own: dict[str, Callable[[Sequence[str]], Iterator[Line]]] = {
            "cd": self._cd,
            "exit": self._exit,
            "help": self._help,
            "history": self._history,
            "man": self._man,
            "pwd": self._pwd,
        }

    def run(self, line: str) -> Iterator[Line]:
        """Run a typed line and yield the lines to print. Never raises, whatever was typed.

        Args:
            line: The line without its line end; an empty one does nothing.
        """
        if not line.strip():
            return
        self.history.append(line.strip())
        try:
            name, *arguments = words(line)
        except ValueError as error:
            yield Missed(line.strip(), str(error))
            return
        manual = MANUAL.get(name)
        if manual is None:
            yield Missed(name, "no such command; type help")
            return
        if len(arguments) < manual.least or (manual.most is not None and len(arguments) > manual.most):
            yield Missed(name, f"usage: {manual.usage}")
            return
        if name in self._own:
            yield from self._own[name](arguments)
        elif name == "ls":
            yield from ls(self.place, arguments, self._width())
        else:
            yield from LISTERS[name](self.place, arguments)

    def _cd(self, arguments: Sequence[str]) -> Iterator[Line]:
        path = arguments[0] if arguments else "/"
        found = list(find(self.place.root, resolve(self.place.working, path)))
        if len(found) != 1:
            yield Missed(path, "more than one directory" if found else "no such directory")
        elif isinstance(found[0].node, Directory):
            self.place = self.place._replace(working=found[0].names)
        else:
            yield Missed(path, "not a directory")

    def _pwd(self, _: Sequence[str]) -> Iterator[Line]:
        yield path_of(self.place.working)

    def _exit(self, _: Sequence[str]) -> Iterator[Line]:
        self.is_over = True
        yield from ()

    def _help(self, _: Sequence[str]) -> Iterator[Line]:
        size = max(len(manual.usage) for manual in MANUAL.values())
        for manual in MANUAL.values():
            yield f"{manual.usage.ljust(size)}  {manual.text}"
        yield from _PATHS.splitlines()

    def _man(self, arguments: Sequence[str]) -> Iterator[Line]:
        manual = MANUAL.get(arguments[0])
        if manual is None:
            yield Missed(arguments[0], "no such command; type help")
        else:
            yield f"usage: {manual.usage}"
            yield manual.text

    def _history(self, arguments: Sequence[str]) -> Iterator[Line]:
        number = len(self.history)
        if arguments:
            if not (arguments[0].isascii() and arguments[0].isdigit() and len(arguments[0]) <= 9):
                yield Missed(arguments[0], "not a number of lines")
                return
            number = min(number, int(arguments[0]))
        first = len(self.history) - number
        for at, line in enumerate(self.history[first:], first + 1):
            yield f"{at:5}  {printable(line)}"

    def complete(self, line: str, word: str) -> list[str]:
        """Return the completions of a word that is being typed.

        Args:
            line: The line as far as it is typed.
            word: The last part of the line, to be completed.
        """
        if line.lstrip() == word:
            return [f"{name} " for name in MANUAL if name.startswith(word)]
        if line.split()[:1] == ["man"]:
            return [name for name in MANUAL if name.startswith(word)]
        head, slash, _ = word.rpartition("/")
        found = list(find(self.place.root, resolve(self.place.working, head + slash or ".")))
        if len(found) != 1 or not isinstance(found[0].node, Directory):
            return []
        return list(_continued(found[0], head + slash, word))


def _continued(directory: Found, head: str, word: str) -> Iterator[str]:
    if not isinstance(directory.node, Directory):
        return
    for name in children(directory.node):
        path = head + shown(name)
        if path.startswith(word):
            yield path + ("/" if isinstance(directory.node.child(name), Directory) else "")
