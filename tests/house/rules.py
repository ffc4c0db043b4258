"""The rules of the house that no linter knows, and what does not keep them yet.

Each table of exceptions may only shrink: what is listed and keeps the rule is a finding, too.

Spec: the layers of docs/architecture.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from tests.house.source import Module, circles, constants, edges, imported, spelled, streams_taken

TERMINAL = frozenset({"argparse", "asyncio", "rich"})
MOST_LINES = 399
MOST_MODULES = 20
MOST_TOOLS_LINES = 4340
"""Of all of ``tools``; 3,200 is where it is to go."""

PATHS = "logdir.paths"
"""Spells every well-known name."""
KINDS = frozenset({"incoming"})
"""Well-known names that kinds and states are called by, too: alone they are no path."""

CIRCLES: frozenset[frozenset[str]] = frozenset()
TAKES_STREAMS = frozenset({"migrate.source.inventory_batches"})
LONG: frozenset[str] = frozenset()
FLAT: frozenset[str] = frozenset()


def findings(modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield one line per finding over a whole tree."""
    yield from circle_findings(modules)
    yield from terminal_findings(modules)
    yield from size_findings(modules)
    yield from name_findings(modules)


def circle_findings(modules: Mapping[str, Module], known: Collection[frozenset[str]] = CIRCLES) -> Iterator[str]:
    """No module imports itself by way of others."""
    found = circles(edges(modules))
    for circle in found:
        if circle not in known:
            names = ", ".join(sorted(circle))
            yield f"circle: {names}: expected no circle of imports, found one; move what both need into a third module"
    yield from _gone("CIRCLES", known, found)


def terminal_findings(modules: Mapping[str, Module], known: Collection[str] = TAKES_STREAMS) -> Iterator[str]:
    """Below ``tools`` nothing parses arguments, runs an event loop, draws, or takes a stream."""
    takers = []
    for module in modules.values():
        if module.name.partition(".")[0] == "tools":
            continue
        for name in sorted({start.partition(".")[0] for start, _ in imported(module)} & TERMINAL):
            yield f"terminal: {module.path}: expected no import of {name} below tools, found one; return a value"
        taken = sorted(set(streams_taken(module)))
        if taken:
            takers.append(module.name)
        if taken and module.name not in known:
            yield f"stream: {module.path}: expected no stream below tools, found {', '.join(taken)}; return a value"
    yield from _gone("TAKES_STREAMS", known, takers)


def name_findings(modules: Mapping[str, Module]) -> Iterator[str]:
    """What a file or directory is called stands in one module; a component of a path counts, a sentence does not."""
    if PATHS not in modules:
        return
    known = constants(modules[PATHS])
    for module in modules.values():
        if module.name == PATHS or module.name.partition(".")[0] not in ("logdir", "migrate"):
            continue
        for line, text in spelled(module):
            for part in text.split("/"):
                if part in known and text not in KINDS and " " not in text:
                    yield f"name: {module.path}:{line}: expected {PATHS}.{known[part]}, found {text!r}; import it"


def size_findings(
    modules: Mapping[str, Module],
    long: Collection[str] = LONG,
    flat: Collection[str] = FLAT,
    most_tools_lines: int = MOST_TOOLS_LINES,
) -> Iterator[str]:
    """No module and no package is too big to find one's way in, and the command line stays thin."""
    too_long = {one.name for one in modules.values() if one.lines > MOST_LINES}
    for name in sorted(too_long - set(long)):
        module = modules[name]
        yield f"long: {module.path}: expected at most {MOST_LINES} lines, found {module.lines}; take it apart"
    yield from _gone("LONG", long, too_long)
    counts = Counter(one.name.rpartition(".")[0] for one in modules.values() if not one.is_package)
    too_flat = {name for name, count in counts.items() if count > MOST_MODULES}
    for name in sorted(too_flat - set(flat)):
        yield f"flat: {name}: expected at most {MOST_MODULES} modules, found {counts[name]}; make packages of them"
    yield from _gone("FLAT", flat, too_flat)
    lines = sum(one.lines for one in modules.values() if one.name.partition(".")[0] == "tools")
    if lines > most_tools_lines:
        yield f"tools: tools: expected at most {most_tools_lines} lines, found {lines}; move work into logdir/service"


def _gone(table: str, known: Iterable[object], found: Collection[object]) -> Iterator[str]:
    for one in known:
        if one not in found:
            name = ", ".join(sorted(one)) if isinstance(one, frozenset) else one
            yield f"exception: {name}: expected what the table {table} excuses, found none; take it out of the table"
