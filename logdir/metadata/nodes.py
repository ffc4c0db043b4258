"""``ls``, ``cat``, ``find`` and ``tree`` over the nodes of the metadata tree, as lines for people.

The commands ``logdirctl metadata ls | cat | find`` and the shell print the same. Names and values come from a cluster:
whatever could steer a terminal is escaped.

Not here: paths as people type them (``metadata.paths``), the other commands of the shell (``metadata.shell``).

Spec: KIP-631, "kafka-metadata-shell.sh"; design §6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from logdir.errors import Problem
from logdir.metadata.paths import path_of, resolve, shown
from logdir.metadata.tree import Directory, Found, Leaf, below, children, find
from logdir.text import printable
from logdir.wire.json_text import double, text

_INDENT = "  "
_NOT_THERE = "no such file or directory"
_DIRECTORY = "is a directory"
_GAP = 2
"""Blanks between two columns."""


class Place(NamedTuple):
    """The metadata tree, and the working directory in it."""

    root: Directory
    working: tuple[str, ...] = ()
    """Names on the way from the root to the working directory."""


class Missed(NamedTuple):
    """A path or a typed line with which a command can do nothing, and why."""

    path: str
    why: str

    @property
    def problem(self) -> Problem:
        """The same as a problem to report."""
        fix = "logdirctl metadata find lists all nodes"
        return Problem("nothing-selected", self.path, "a node of the tree that this command can show", self.why, fix)


Line = str | Missed


def targets(place: Place, paths: Sequence[str]) -> Iterator[tuple[str, Found | None]]:
    """Yield every path with each node that it leads to, or with ``None`` if it leads to none.

    Args:
        place: The tree, and where relative paths begin.
        paths: As typed; empty ones are ignored, and no path at all is the working directory.
    """
    for path in [path for path in paths if path] or ["."]:
        none = True
        for found in find(place.root, resolve(place.working, path)):
            none = False
            yield path, found
        if none:
            yield path, None


def chosen(place: Place, paths: Sequence[str], lister: str) -> Iterator[Found | Missed]:
    """Yield the nodes that the paths of a command lead to, each once for every path.

    Args:
        place: The tree, and where relative paths begin.
        paths: As typed.
        lister: The command: ``ls`` takes any node, ``cat`` leaves, ``find`` any node with all below it.
    """
    for path, found in targets(place, paths):
        if found is None:
            yield Missed(path, _NOT_THERE)
        elif lister == "cat" and not isinstance(found.node, Leaf):
            yield Missed(path, _DIRECTORY)
        elif lister == "find":
            yield from below(found)
        else:
            yield found


def ls(place: Place, paths: Sequence[str], width: int | None = None) -> Iterator[Line]:
    """Yield the names of leaves, then the names in each directory; in columns if a width is given."""
    leaves, directories = [], []
    for path, found in targets(place, paths):
        if found is None:
            yield Missed(path, _NOT_THERE)
        elif isinstance(found.node, Leaf):
            leaves.append(shown(found.names[-1]))
        else:
            directories.append(found)
    yield from columns(leaves, width)
    is_first = not leaves
    for found in directories:
        if leaves or len(directories) > 1:
            if not is_first:
                yield ""
            yield f"{path_of(found.names)}:"
            is_first = False
        if isinstance(found.node, Directory):
            yield from columns([shown(name) for name in children(found.node)], width)


def columns(entries: Sequence[str], width: int | None) -> Iterator[str]:
    """Yield lines of entries: one entry a line without a width, or as many columns as fit into it."""
    if width is None or not entries:
        yield from entries
        return
    size = max(map(len, entries)) + _GAP
    across = max(1, (width + _GAP) // size)
    lines = -(-len(entries) // across)
    for line in range(lines):
        yield "".join(entry.ljust(size) for entry in entries[line::lines]).rstrip()


def cat(place: Place, paths: Sequence[str]) -> Iterator[Line]:
    """Yield the values of leaves."""
    for found in chosen(place, paths, "cat"):
        if isinstance(found, Missed):
            yield found
        elif isinstance(found.node, Leaf):
            yield value_text(found.node.value)


def find_lines(place: Place, paths: Sequence[str]) -> Iterator[Line]:
    """Yield the paths of the nodes that the paths lead to, and of all nodes below them."""
    for found in chosen(place, paths, "find"):
        yield found if isinstance(found, Missed) else path_of(found.names)


def tree(place: Place, paths: Sequence[str]) -> Iterator[Line]:
    """Yield nodes and all nodes below them, indented by their depth, with the values of leaves."""
    for path, found in targets(place, paths):
        if found is None:
            yield Missed(path, _NOT_THERE)
            continue
        for one in below(found):
            depth = len(one.names) - len(found.names)
            name = shown(one.names[-1]) if one.names else "/"
            value = f" {value_text(one.node.value)}" if isinstance(one.node, Leaf) else ""
            yield f"{_INDENT * depth}{name}:{value}"


def value_text(value: object) -> str:
    """Return the value of a leaf as one line that cannot steer a terminal."""
    match value:
        case str():
            return printable(value)
        case bool():
            return str(value).lower()
        case float():
            return double(value)
        case dict() | list():
            return escaped(text(value))
        case _:
            return str(value)


def escaped(line: str) -> str:
    """Return a line of JSON of the same value, with all that could steer a terminal escaped."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else _json_escape(char) for char in line)


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))


LISTERS: dict[str, Callable[[Place, Sequence[str]], Iterator[Line]]] = {
    "ls": ls,
    "cat": cat,
    "find": find_lines,
    "tree": tree,
}
