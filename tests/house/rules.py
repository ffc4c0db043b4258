"""The rules of the house that no linter knows, and what does not keep them yet.

Each table of exceptions may only shrink: what is listed and keeps the rule is a finding, too.

Spec: the layers of docs/architecture.md.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.house.source import (
    Module,
    arguments_taken,
    circles,
    codes_said,
    constants,
    edges,
    fields_of_classes,
    imported,
    named,
    pointers,
    spelled,
    streams_taken,
    without_fix,
)

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
TERMINAL = frozenset({"argparse", "asyncio", "rich"})
MOST_LINES = 399
MOST_MODULES = 20
MOST_TOOLS_LINES = 3200
"""Of all of ``tools``."""

CIRCLES: frozenset[frozenset[str]] = frozenset()
TAKES_ARGUMENTS = frozenset({"logdir.worker.child", "logdir.worker.watch"})
"""A worker, or a watch, that is a new interpreter gets the pid of its starter so."""
LONG: frozenset[str] = frozenset()
FLAT: frozenset[str] = frozenset()

WITHOUT_FIX: frozenset[str] = frozenset()
"""Modules that refuse something without a fix."""

SAYS_A_CODE = frozenset(
    {
        "logdir.cluster.request_document: api.value",
        "logdir.cluster.znodes: self.value",
        "logdir.daemon.config.values: RemovalReason.NOT_KNOWN_YET.value",
        "logdir.decide.image.admission: document.api.value",
        "logdir.decide.selector: reading.value",
        "logdir.formats.kafka.meta_properties: version.value",
        "logdir.service.layout: self.verb.value",
    }
)
"""Kafka's names of requests, what is typed (in the configuration, a verb of ``layout``), words for how a selector is
read, a version number, and the value of a znode.
"""

PATHS = "logdir.paths"
"""Spells every well-known name."""
KINDS = frozenset({"incoming"})
"""Well-known names of kinds and states, too: alone they are no path."""

SPELLS_A_REPLICA = frozenset({
    "logdir.decide.selector._Way",
    "logdir.formats.kafka.offset_checkpoint.TopicPartition",
    "logdir.formats.own.inventory.Entry",
    "logdir.formats.own.plan_document.Step",
    "logdir.formats.own.replica_marker.ReplicaMarker",
    "logdir.formats.stock_output.log_dirs_json.PartitionLine",
    "logdir.names.IdDir",
    "logdir.names.PartitionDir",
    "logdir.names.WorkDir",
    "logdir.observe.classify.Named",
    "logdir.wire.metadata_fast.PartitionChangeRow",
    "logdir.wire.metadata_fast.PartitionRow",
})  # fmt: skip
"""Rows of a file or the wire, parts of a name, and what a selector asks for; all else holds a ``ReplicaRef``."""


INVENTORY = "logdir.formats.own.inventory"
MAKES_ROWS = "logdir.observe.inventory_row"
"""Converts entries of a scan to rows of a file; only ``logdir.formats`` and ``migrate`` know those rows, too."""


def findings(modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield one line per finding over a whole tree."""
    yield from circle_findings(modules)
    yield from ring_findings(modules, rings())
    yield from terminal_findings(modules)
    yield from size_findings(modules)
    yield from replica_findings(modules)
    yield from name_findings(modules)
    yield from pointer_findings(modules)
    yield from row_findings(modules)
    yield from fix_findings(modules)
    yield from code_findings(modules)


def circle_findings(modules: Mapping[str, Module], known: Collection[frozenset[str]] = CIRCLES) -> Iterator[str]:
    """No module imports itself by way of others."""
    found = circles(edges(modules))
    for circle in found:
        if circle not in known:
            names = ", ".join(sorted(circle))
            yield f"circle: {names}: expected no circle of imports, found one; move what both need into a third module"
    yield from _gone("CIRCLES", known, found)


def rings() -> list[frozenset[str]]:
    """Return the packages of each ring, the innermost first, as import-linter gets them."""
    contracts = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [one for one in contracts if one["name"] == "the rings of logdir"]
    (container,) = contract["containers"]
    layers = [line.split("|") for line in reversed(contract["layers"])]
    return [frozenset(f"{container}.{part.strip()}" for part in parts) for parts in layers]


def ring_findings(modules: Mapping[str, Module], rings: Sequence[Collection[str]]) -> Iterator[str]:
    """No module names one of a ring further out in a string, which import-linter would not see."""
    ring_of = {package: number for number, ring in enumerate(rings) for package in ring}

    def ring(name: str) -> int | None:
        return next((ring_of[one] for one in (name, ".".join(name.split(".")[:2])) if one in ring_of), None)

    for module in modules.values():
        here = ring(module.name)
        for name in sorted(named(module, modules)):
            there = ring(name)
            if here is not None and there is not None and here < there:
                yield f"ring: {module.path}: expected no name of a module further out, found {name}; let it be passed"


def terminal_findings(
    modules: Mapping[str, Module], known_arguments: Collection[str] = TAKES_ARGUMENTS
) -> Iterator[str]:
    """Below ``tools`` nothing reads or parses arguments, runs an event loop, draws, or takes a stream."""
    readers = []
    for module in modules.values():
        if module.name.partition(".")[0] == "tools":
            continue
        for name in sorted({start.partition(".")[0] for start, _ in imported(module)} & TERMINAL):
            yield f"terminal: {module.path}: expected no import of {name} below tools, found one; return a value"
        taken = sorted(set(streams_taken(module)))
        if taken:
            yield f"stream: {module.path}: expected no stream below tools, found {', '.join(taken)}; return a value"
        arguments = sorted(set(arguments_taken(module)))
        if arguments:
            readers.append(module.name)
        if arguments and module.name not in known_arguments:
            found = ", ".join(arguments)
            yield f"arguments: {module.path}: expected no sys.argv below tools, found {found}; take values"
    yield from _gone("TAKES_ARGUMENTS", known_arguments, readers)


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


def replica_findings(modules: Mapping[str, Module], known: Collection[str] = SPELLS_A_REPLICA) -> Iterator[str]:
    """Which replica something is about is said by a ``ReplicaRef``."""
    found = {
        f"{module.name}.{name}": module
        for module in modules.values()
        if module.name.partition(".")[0] == "logdir" and module.name != "logdir.replica_ref"
        for name, fields in fields_of_classes(module)
        if "partition" in fields and fields & {"topic", "topic_id"}
    }
    for name in sorted(found.keys() - set(known)):
        yield f"replica: {found[name].path}: expected a ReplicaRef, found topic and partition in {name}; hold one"
    yield from _gone("SPELLS_A_REPLICA", known, found)


def _gone(table: str, known: Iterable[object], found: Collection[object]) -> Iterator[str]:
    for one in known:
        if one not in found:
            name = ", ".join(sorted(one)) if isinstance(one, frozenset) else one
            yield f"exception: {name}: expected what the table {table} excuses, found none; take it out of the table"


def name_findings(modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield every well-known name spelled outside its one module; a component of a path counts, a sentence does not."""
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


def pointer_findings(modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield every module that a "Not here" names and that does not exist; so a reader is not sent to a former place."""
    for module in modules.values():
        for pointer in pointers(module):
            dotted = f".{pointer}"
            if not any(f".{name}".endswith(dotted) for name in modules):
                yield f"pointer: {module.path}: expected a module, found ``{pointer}`` under Not here"


def row_findings(modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield every module that knows the rows of an inventory file and neither reads nor writes one."""
    package, _, name = INVENTORY.rpartition(".")
    rows = {(INVENTORY, "Entry"), (INVENTORY, None), (package, name)}
    for module in modules.values():
        if module.name.partition(".")[0] != "logdir" or module.name.startswith("logdir.formats."):
            continue
        if module.name != MAKES_ROWS and not rows.isdisjoint(imported(module)):
            yield f"row: {module.path}: expected a ScannedEntry, found a row of an inventory file; hold the entry"


def fix_findings(modules: Mapping[str, Module], known: Collection[str] = WITHOUT_FIX) -> Iterator[str]:
    """Whoever is refused something reads what to do, or that nothing is to be done and why."""
    found = []
    for module in modules.values():
        lines = list(without_fix(module))
        if lines:
            found.append(module.name)
        if module.name not in known:
            for line in lines:
                yield f"fix: {module.path}:{line}: expected a fix of what is refused, found none; name a command or why"
    yield from _gone("WITHOUT_FIX", known, found)


def code_findings(modules: Mapping[str, Module], known: Collection[str] = SAYS_A_CODE) -> Iterator[str]:
    """A text for people has words; the value of an enum stands under a key of its own."""
    found = []
    for module in modules.values():
        for line, text in codes_said(module):
            found.append(f"{module.name}: {text}")
            if found[-1] not in known:
                yield f"code: {module.path}:{line}: expected words in a text for people, found {text}; give it words"
    yield from _gone("SAYS_A_CODE", known, found)
