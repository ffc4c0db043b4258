"""Each rule of the house finds what breaks it, and the tree keeps all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.rules import (
    SPELLS_A_REPLICA,
    WITHOUT_FIX,
    circle_findings,
    code_findings,
    findings,
    fix_findings,
    name_findings,
    pointer_findings,
    replica_findings,
    ring_findings,
    rings,
    row_findings,
    size_findings,
    terminal_findings,
)
from tests.house.source import Module, read

TOP = Path(__file__).resolve().parents[2]


def tree(**texts: str) -> dict[str, Module]:
    """Return modules whose names have ``__`` for a dot."""
    names = {name.replace("__", "."): text for name, text in texts.items()}
    return {name: Module(name, Path(name.replace(".", "/") + ".py"), text) for name, text in names.items()}


def test_the_tree_keeps_every_rule() -> None:
    assert list(findings(read(TOP))) == []


@pytest.mark.parametrize(
    "back",
    [
        "import logdir.a",
        "from logdir import a",
        "from logdir.a import x",
        "from . import a",
        "from .a import x",
        "def f():\n    from logdir.a import x",
        "if TYPE_CHECKING:\n    from logdir.a import x",
        "import_module('logdir.a')",
        "CALLS = {'logdir.a:x'}",
        "HERE: Final = 'logdir'\nimport_module(f'{HERE}.a')",
    ],
)
def test_a_circle_is_found_however_it_is_imported(back: str) -> None:
    assert len(list(circle_findings(tree(logdir__a="import logdir.b", logdir__b=back), ()))) == 1


def test_a_circle_over_three_is_one_finding() -> None:
    (line,) = circle_findings(
        tree(logdir__a="import logdir.b", logdir__b="import logdir.c", logdir__c="import logdir.a"), ()
    )
    assert "logdir.a, logdir.b, logdir.c" in line


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("logdir__worker__a", "CALLS = {'logdir.service.a:x'}", 1),
        ("logdir__paths", "import_module('logdir.service.a')", 1),
        ("logdir__daemon__a", "CALLS = {'logdir.service.a:x'}", 0),
        ("logdir__service__b", "CALLS = {'logdir.service.a:x'}", 0),
        ("tools__a", "CALLS = {'logdir.service.a:x'}", 0),
        ("logdir__worker__a", "'of logdir.service.a:x'", 0),
    ],
)
def test_a_string_that_names_a_module_further_out_is_found(name: str, text: str, count: int) -> None:
    modules = tree(**{name: text, "logdir__service__a": "def x(): ..."})
    assert len(list(ring_findings(modules, rings()))) == count


def test_a_way_that_does_not_lead_back_is_no_circle() -> None:
    modules = tree(logdir__a="import logdir.b\nimport logdir.c", logdir__b="import logdir.c", logdir__c="import os")
    assert list(circle_findings(modules, ())) == []


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("logdir__a", "def f():\n    import argparse", 1),
        ("migrate__a", "from rich.table import Table", 1),
        ("scheduler__a", "import asyncio.events", 1),
        ("tools__a", "import argparse", 0),
        ("logdir__a", "def f(out: TextIO): ...", 1),
        ("logdir__a", "def f(*, out: 'BinaryIO | None' = None): ...", 1),
        ("logdir__a", "def f(*out: IO[bytes]): ...", 1),
        ("logdir__a", "import sys\nsys.stdout.write('x')", 1),
        ("logdir__a", "from sys import stderr", 1),
        ("logdir__a", "import sys\nsys.__stdout__.write('x')", 1),
        ("logdir__a", "import sys\nsys.argv[1]", 1),
        ("migrate__a", "from sys import argv", 1),
        ("logdir__a", "import sys\nsys.executable", 0),
        ("tools__a", "import sys\nsys.argv[1]", 0),
        ("logdir__a", "def f(out: str) -> TextIO: ...", 0),
        ("tools__a", "def f(out: TextIO): ...", 0),
    ],
)
def test_arguments_and_streams_below_tools_are_found(name: str, text: str, count: int) -> None:
    assert len(list(terminal_findings(tree(**{name: text}), ()))) == count


@pytest.mark.parametrize(("lines", "count"), [(399, 0), (400, 1)])
def test_a_module_of_400_lines_is_found(lines: int, count: int) -> None:
    assert len(list(size_findings(tree(logdir__a="\n" * lines), (), ()))) == count


@pytest.mark.parametrize(("number", "count"), [(20, 0), (21, 1)])
def test_a_package_of_21_modules_is_found(number: int, count: int) -> None:
    modules = tree(**{f"logdir__m{one}": "" for one in range(number)})
    assert len(list(size_findings(modules, (), ()))) == count


def test_a_command_line_that_grows_is_found() -> None:
    modules = tree(tools__a="\n" * 6, tools__b="\n" * 5)
    assert [len(list(size_findings(modules, (), (), most))) for most in (11, 10)] == [0, 1]


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("logdir__a", "class A:\n    topic: str\n    partition: int", 1),
        ("logdir__a", "class A:\n    topic_id: TopicId | None\n    partition: int = 0", 1),
        ("logdir__a", "def f():\n    class A(NamedTuple):\n        partition: int\n        topic: str", 1),
        ("logdir__a", "class A:\n    ref: ReplicaRef", 0),
        ("logdir__a", "class A:\n    topic: str\n    topic_id: TopicId", 0),
        ("logdir__replica_ref", "class A:\n    topic: str\n    partition: int", 0),
        ("migrate__a", "class A:\n    topic: str\n    partition: int", 0),
    ],
)
def test_a_class_that_spells_topic_and_partition_itself_is_found(name: str, text: str, count: int) -> None:
    assert len(list(replica_findings(tree(**{name: text}), ()))) == count


def test_at_most_twelve_classes_spell_topic_and_partition_themselves() -> None:
    assert len(SPELLS_A_REPLICA) <= 12


def test_an_exception_that_is_no_longer_needed_is_found() -> None:
    modules = tree(logdir__a="")
    assert len(list(circle_findings(modules, {frozenset({"logdir.a", "logdir.b"})}))) == 1
    assert len(list(terminal_findings(modules, {"logdir.a"}))) == 1
    assert len(list(size_findings(modules, {"logdir.a"}, {"logdir"}))) == 2
    assert len(list(replica_findings(modules, {"logdir.a.A"}))) == 1
    assert len(list(fix_findings(modules, {"logdir.a"}))) == 1
    assert len(list(code_findings(modules, {"logdir.a: state.value"}))) == 1


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("logdir__a", 'x = "meta.properties"', 1),
        ("logdir__a", 'x = f"{top}/meta.properties"', 1),
        ("logdir__a", 'x = f"incoming/{name}"', 1),
        ("logdir__a", 'x = f"{base:020d}.log"', 1),
        ("migrate__a", 'x = name.endswith(".log")', 1),
        ("logdir__a", '"""meta.properties"""\nx = 1\n"""incoming/"""', 0),
        ("logdir__a", 'x = "format the log dir, then look at meta.properties"', 0),
        ("logdir__a", 'x = "copies in incoming/ are kept"', 0),
        ("logdir__a", 'INCOMING = "incoming"', 0),
        ("logdir__a", "from logdir.paths import SEGMENT", 0),
        ("tools__a", 'x = "meta.properties"', 0),
    ],
)
def test_a_well_known_name_that_is_spelled_elsewhere_is_found(name: str, text: str, count: int) -> None:
    known = 'PROPERTIES: Final = "meta.properties"\nINCOMING: Final = "incoming"\nSEGMENT: Final = ".log"\n'
    assert len(list(name_findings(tree(logdir__paths=known, **{name: text})))) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('"""Not here: x (``a``), y (``disk.a``)."""', 1),
        ('"""First.\n\nNot here: x (``a``, ``gone``),\ny (``gone.a``).\n\nNor (``here``)."""', 2),
        ('"""Not here: what ``gone`` holds (a word), and (``page.CSS``)."""', 0),
        ('"""First (``gone``)."""', 0),
    ],
)
def test_a_pointer_to_a_module_that_is_not_there_is_found(text: str, count: int) -> None:
    assert len(list(pointer_findings(tree(logdir__a=text)))) == count


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("logdir__observe__a", "from logdir.formats.own.inventory import Entry", 1),
        ("logdir__worker__look", "def f():\n    from logdir.formats.own.inventory import Entry", 1),
        ("logdir__service__a", "import logdir.formats.own.inventory", 1),
        ("logdir__decide__a", "from logdir.formats.own import inventory", 1),
        ("logdir__observe__a", "from logdir.formats.own.inventory import Kind", 0),
        ("logdir__formats__own__a", "from logdir.formats.own.inventory import Entry", 0),
        ("logdir__observe__inventory_row", "from logdir.formats.own.inventory import Entry", 0),
        ("migrate__a", "from logdir.formats.own.inventory import Entry", 0),
    ],
)
def test_a_row_of_an_inventory_file_in_memory_is_found(name: str, text: str, count: int) -> None:
    assert len(list(row_findings(tree(**{name: text})))) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('raise RefusedError(path, why=Why.CHANGED, expected="a", found="b")', 1),
        ('raise RefusedError(path, why=Why.CHANGED, expected="a", found="b", fix="")', 1),
        ('raise RefusedError(path, why=Why.CHANGED, expected="a", found="b", fix=FIX)', 0),
        ('refuse(*where, Why.CHANGED, "a", "b")', 1),
        ('refuse(*where, Why.CHANGED, "a", "b", "")', 1),
        ('refuse(*where, Why.CHANGED, "a", "b", "look again")', 0),
        ('refuse(log_dir, path, Why.CHANGED, "a", "b")', 1),
        ('refuse(log_dir, path, Why.CHANGED, "a", "b", fix="look again")', 0),
        ("refuse(log_dir, path, *words)", 0),
        ('Problem(Why.CHANGED.value, path, "a", "b")', 1),
        ('Problem(Why.CHANGED.value, path, "a", "b", "look again")', 0),
        ('Problem("config-error", path, "a", "b")', 0),
        ("request.refuse(error)", 0),
    ],
)
def test_a_refusal_without_a_fix_is_found(text: str, count: int) -> None:
    assert len(list(fix_findings(tree(logdir__a=text), ()))) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('raise RefusedError(path, expected="a", found=file.state.value, fix="c")', 1),
        ('raise RefusedError(path, expected=" or ".join(one.value for one in States), found="b", fix="c")', 1),
        ('return refuse(*where, Why.NOT_LIVE, "a live replica", f"a {replica.kind.value} directory", fix)', 1),
        ('found = f"in state {state.value}"\n    return Problem(Why.CHANGED.value, path, "a", found, "c")', 1),
        ('a, b = "a", kind.value\n    return Problem(Why.CHANGED.value, path, a, b, "c")', 1),
        ('return StillAssigned(Assigned.GONE, f"it was staged as {marker.reason.value}")', 1),
        ('raise errors.StateError("x", found=event.value)', 1),
        ('return Problem(Why.CHANGED.value, path, "a", "b", "c")', 0),
        ('return Problem(why.value, path, "a", one.why.value, "c")', 0),
        ('raise ValueError(f"no {kind.value}")', 0),
        ("return render(kind.value)", 0),
    ],
)
def test_the_value_of_an_enum_in_a_text_for_people_is_found(text: str, count: int) -> None:
    assert len(list(code_findings(tree(logdir__a=f"def f():\n    {text}"), ()))) == count


def test_no_module_is_excused_from_a_fix() -> None:
    assert not WITHOUT_FIX
