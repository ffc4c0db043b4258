"""A document that cannot be followed for a reason of the broker's stays in the inbox, and is not tried without end."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from logdir.daemon.config import parse
from logdir.daemon.inbox.documents import Documents
from logdir.daemon.session import Session
from logdir.errors import ConfigError, DiskError, LockHeldError, LogDirError, Problem, RefusedError
from logdir.refusal_slug import Why
from logdir.service.batch.use_cases import Spec
from logdir.service.report.use_case import Ran
from tests.logdir.daemon.test_inbox import WITH_GONE


class Failing:
    """The work on a broker, on which each request fails."""

    def __init__(self, state: Path, error: Exception) -> None:
        text = f"server.properties: s\nstate.dir: {state}\nauto.while.stopped: true\n"
        config = parse(text.encode(), "/etc/logdird/b1.yaml")
        self.session = cast(
            Session, SimpleNamespace(config=config, require_same=lambda: None, broker=SimpleNamespace(open_dirs=()))
        )
        self.is_blocked = False
        self.error = error
        self.tried = 0
        self.events: list[dict[str, object]] = []
        self.errors: list[str] = []

    def run(self, spec: Spec, request: Any, *, is_applied: bool) -> tuple[Ran, tuple[str, ...]]:
        assert (spec.name, is_applied) == ("reconcile", True)
        self.tried += 1
        raise self.error

    def note(self, event: str, **values: object) -> None:
        self.events.append({"event": event, **values})

    def note_document(self, *, is_done: bool) -> None:
        assert not is_done

    def note_error(self, problem: Problem) -> None:
        self.errors.append(problem.slug)


def put(state: Path, name: str) -> None:
    (state / "inbox").mkdir(exist_ok=True)
    (state / "inbox" / name).write_text(json.dumps(WITH_GONE))


ERRORS: dict[str, Exception] = {
    "a disk": DiskError("/d1", expected="a call that succeeds", found="Input/output error"),
    "a log dir that is replaced": RefusedError("/d1", why=Why.CONFIGURATION_CHANGED, expected="x", found="y", fix="z"),
    "a call": OSError(5, "Input/output error"),
    "the broker": LockHeldError("/d1/.lock", expected="no process that holds it", found="pid 1"),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_it_waits_and_so_do_those_after_it(tmp_path: Path, error: Exception) -> None:
    work = Failing(tmp_path, error)
    documents = Documents(work)
    put(tmp_path, "1.json")
    put(tmp_path, "2.json")
    documents.look(is_running=False, is_start_awaited=False)
    assert documents.follow_next()
    assert not documents.follow_next()
    for _ in range(3):
        documents.look(is_running=False, is_start_awaited=False)
        assert not documents.follow_next()
    assert work.tried == 1
    (problem,) = documents.waiting
    expected = "request-waiting" if isinstance(error, LockHeldError) else None
    assert problem.slug == (expected or (error.slug if isinstance(error, LogDirError) else "io-error"))
    # A new session, as after the broker was opened again, tries it again.
    again = Documents(work)
    again.look(is_running=False, is_start_awaited=False)
    assert again.follow_next()
    assert work.tried == 2
    assert not list((tmp_path / "inbox" / "refused").iterdir())


@pytest.mark.parametrize(
    "error", [ConfigError((Problem("config-error", "--from", "a", "b"),)), ValueError("a fault of ours")]
)
def test_what_is_wrong_with_the_document_itself_refuses_it(tmp_path: Path, error: Exception) -> None:
    work = Failing(tmp_path, error)
    documents = Documents(work)
    put(tmp_path, "1.json")
    documents.look(is_running=False, is_start_awaited=False)
    assert documents.follow_next()
    slug = "config-error: " if isinstance(error, ConfigError) else "internal-error: 1.json: "
    assert (tmp_path / "inbox" / "refused" / "1.json.error").read_text().startswith(slug)
    assert work.events == [{"event": "document", "name": "1.json", "outcome": "refused"}]


def test_what_cannot_be_moved_keeps_no_document_waiting(tmp_path: Path) -> None:
    work = Failing(tmp_path, DiskError("/d1", expected="a", found="b"))
    documents = Documents(work)
    put(tmp_path, "2.json")
    (tmp_path / "inbox" / "1.json").mkdir()
    (tmp_path / "inbox" / "refused" / "1.json.error").mkdir(parents=True)  # Its lines cannot be written.
    documents.look(is_running=True, is_start_awaited=False)
    assert [problem.slug for problem in documents.waiting] == ["inbox-unusable", "request-waiting"]
    assert documents.waiting[0].line() == (
        f"inbox-unusable: {tmp_path}/inbox/1.json: expected a file that can be moved, found Is a directory; "
        "give it to the owner of the log dirs, or remove it"
    )
