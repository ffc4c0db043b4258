"""Commands are declared once: what they fill of a request, and what the next command repeats of them."""

from __future__ import annotations

import argparse
import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest

from logdir.service.batch import use_cases
from tools.cli.broker import BROKER, SKIPPED, disk_timeout
from tools.cli.command import Change, Command, Group
from tools.cli.delay import DELAY
from tools.cli.option import Flag, OneOf, Option, add_options, filled, typed
from tools.cli.usage import Parser, UsageError
from tools.logdirctl.commands import COMMANDS

ROOT = Path(__file__).parents[2]


def declared() -> Iterator[Command]:
    for name in COMMANDS:
        found: Command | Group = import_module(f"tools.logdirctl.{name.replace('-', '_')}").COMMAND
        yield from found.commands if isinstance(found, Group) else (found,)


CHANGES = {one.title: one for one in declared() if isinstance(one.run, Change)}


def parsed(*options: Option, argv: str = "") -> argparse.Namespace:
    parser = Parser(prog="logdirctl test")
    add_options(parser, options)
    arguments: argparse.Namespace = parser.parse_args(argv.split())
    return arguments


def test_every_use_case_that_changes_replicas_is_declared() -> None:
    # These fill their requests by themselves.
    assert sorted(CHANGES) == sorted(set(use_cases.NAMES) - {"reconcile", "layout", "handover"})


@pytest.mark.parametrize("title", CHANGES)
def test_no_option_fills_a_field_that_its_request_lacks_and_none_is_left_empty(title: str) -> None:
    request = use_cases.spec_of(title).request
    fields = [option.field for option in CHANGES[title].options if option.field]
    assert len(fields) == len(set(fields))
    assert set(fields) <= set(get_type_hints(request))
    if dataclasses.is_dataclass(request):
        required = {
            one.name
            for one in dataclasses.fields(request)
            if one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        }
        assert required <= set(fields)


@pytest.mark.parametrize("title", CHANGES)
def test_no_override_fills_nothing_and_none_is_repeated(title: str) -> None:
    command = CHANGES[title]
    assert isinstance(command.run, Change)
    again = [one for one in command.run.again if isinstance(one, Option)]
    assert [one.names for one in again if one.names[0].startswith(("--even-", "--include-held"))] == []
    # Those of a disk, and those of a purge, which fill one field together, are filled by others.
    lone = {"--even-if-stale-disk", "--even-if-last", "--even-if-early"} if title == "staged purge" else set()
    empty = {one.names[0] for one in command.options if one.names[0].startswith("--even-") and not one.field}
    assert empty <= {"--even-if-stale-disk", *lone}


@pytest.mark.parametrize(
    ("option", "argv", "again"),
    [
        (Flag("--keep", "-"), "", ""),
        (Flag("--keep", "-"), "--keep", "--keep"),
        (Option("-o --output", "-"), "--output /a", "-o /a"),
        (Option("--name", "-", is_repeated=True), "", ""),
        (Option("--name", "-", is_repeated=True), "--name a --name $b", "--name a --name '$b'"),
        (Option("--number", "-", type=int), "--number 0", "--number 0"),
        (Option("--number", "-", type=int, default=7), "--number 7", ""),
        (Option("selector", "-", nargs="?"), "", ""),
        (Option("selector", "-", nargs="?"), "pay-*", "'pay-*'"),
        (Option("--as", "-", dest="topic"), "--as pay", "--as pay"),
        (disk_timeout("-"), "--disk-timeout 10.0", ""),
        (disk_timeout("-"), "--disk-timeout 0.5", "--disk-timeout 0.5"),
        (DELAY, "--delay 240m", ""),
        (DELAY, "--delay-ms 5400000", "--delay 90m"),
    ],
)
def test_what_was_typed_is_typed_again_and_a_default_is_not(option: Option, argv: str, again: str) -> None:
    assert option.typed(parsed(option, argv=argv)) == again


def test_the_broker_is_named_again_with_the_disks_that_are_skipped() -> None:
    arguments = parsed(*BROKER, SKIPPED, argv="--skip-log-dir /d2 --log-dirs /d1,/d2 --disk-timeout 3")
    assert typed(arguments, *BROKER) == "--log-dirs /d1,/d2 --disk-timeout 3"
    assert typed(arguments, *BROKER, SKIPPED) == "--log-dirs /d1,/d2 --disk-timeout 3 --skip-log-dir /d2"


@pytest.mark.parametrize("argv", ["", "--a 1 --b 2"])
def test_of_options_that_exclude_each_other_exactly_one_is_typed(argv: str) -> None:
    group = OneOf("a or b")
    with pytest.raises(UsageError):
        parsed(Option("--a", "-", one_of=group), Option("--b", "-", one_of=group), argv=argv)


def test_options_fill_the_fields_that_they_name_from_all_arguments() -> None:
    options = (
        Option("--a", "-", field="whole", value=lambda arguments: (arguments.a, arguments.b)),
        Option("--b", "-"),
        Option("--c", "-", field="several", is_repeated=True),
    )
    assert filled(parsed(*options, argv="--b 2 --c x --c y"), options) == {"whole": (None, "2"), "several": ("x", "y")}


@pytest.mark.parametrize("group", ["staged", "stage", "capture"])
def test_no_use_case_of_a_change_is_imported_before_it_runs(group: str) -> None:
    modules = {f"logdir.service.{name}" for name in ("stage", "capture", "restore", "adopt", "hold", "export", "purge")}
    code = "import sys; from tools.logdirctl.main import build_parser; build_parser([sys.argv[1]]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, group], capture_output=True, text=True, cwd=ROOT, check=True)
    assert modules & set(done.stdout.split()) == set()
