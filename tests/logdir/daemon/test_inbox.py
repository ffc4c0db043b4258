"""Request documents in the inbox: followed in order, on a stopped broker, once; other files are refused by name."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logdir.formats.own import controller_file
from tests.builders import TOPIC_ID, partition
from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.reconcile.universe import document, listed, stopped
from tests.tools.ctl import HOME, ctl, held, tree
from tests.tools.reconcile_rig import GONE, OTHER, age
from tools.cli.arguments import Exit

PAY = 22
EVERY = tuple(range(PAY))
FULL, INCREMENTAL = 2, 1
SWEEP = "sweep.interval.ms: 500\n"
WITHOUT_GONE = document(listed(pay=(TOPIC_ID, EVERY), gone=(GONE, (2,))), type=FULL, sequence=1)
WITH_GONE = document(listed(pay=(TOPIC_ID, EVERY), gone=(GONE, (0, 1, 2))), type=FULL, sequence=1)


def broker(one: Daemon) -> None:
    """Make ``pay`` with 22 partitions and ``gone`` with three, all of them there for years."""
    for number in EVERY:
        age(one.make("pay", number))
    for number in range(3):
        age(one.make("gone", number, disk=1, topic_id=GONE))


def put(one: Daemon, name: str, value: dict[str, Any] | bytes) -> Path:
    """Write a document as another program does: under a name that starts with ``.``, then renamed."""
    inbox = one.folder / "state" / "inbox"
    inbox.mkdir(parents=True, exist_ok=True)
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    (inbox / f".{name}").write_bytes(data)
    return (inbox / f".{name}").rename(inbox / name)


def lie(one: Daemon) -> dict[str, list[str]]:
    """Return what lies in each directory of the inbox."""
    inbox = one.folder / "state" / "inbox"
    folders = {"inbox": inbox, "done": inbox / "done", "refused": inbox / "refused", "running": inbox / ".running"}
    return {
        name: sorted(path.name for path in folder.iterdir() if not path.is_dir() or path.suffix == ".json")
        for name, folder in folders.items()
        if folder.is_dir()
    }


def until_handled(one: Daemon, *, done: int = 0, refused: int = 0) -> None:
    def is_so() -> bool:
        found = lie(one)
        names = [name for name in found.get("refused", ()) if not name.endswith(".error")]
        return (len(found.get("done", ())), len(names)) == (done, refused)

    until(f"{done} are done and {refused} refused", is_so)


def error_of(one: Daemon, name: str) -> str:
    return (one.folder / "state" / "inbox" / "refused" / f"{name}.error").read_text()


def position(one: Daemon) -> tuple[int, int] | None:
    found = controller_file.parse(Path(f"{one.log_dirs[0]}.logdird/controller.json").read_bytes()).requests
    return None if found is None else (found.controller_epoch, found.sequence)


def waiting(one: Daemon) -> list[str]:
    return [problem.line() for problem in one.status().waiting]


def test_documents_are_followed_in_order_of_name(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        broker(one)
        for sequence in (3, 1, 2):
            put(one, f"{sequence}.json", WITH_GONE | {"sequence": sequence})
        one.start()
        until_handled(one, done=3)
        assert position(one) == (5, 3)


@pytest.mark.slow
def test_a03_an_equal_document_changes_nothing_and_a_lower_one_is_refused(tmp_path: Path) -> None:
    with daemon(tmp_path, more=SWEEP) as one:
        broker(one)
        put(one, "1.json", WITH_GONE | {"sequence": 7})
        until_handled(one, done=1)
        before = tree(*one.log_dirs)
        put(one, "1.json", WITH_GONE | {"sequence": 7})
        until_handled(one, done=2)
        put(one, "2.json", WITHOUT_GONE | {"sequence": 6})
        until_handled(one, done=2, refused=1)
        assert "request-overtaken" in error_of(one, "2.json") or "metadata-older" in error_of(one, "2.json")
        assert error_of(one, "2.json").count("\n") == 1
        assert tree(*one.log_dirs) == before
        assert re.fullmatch(r"1\.json 1\.json\.\d{13}", " ".join(lie(one)["done"]))


def test_beside_a_running_broker_a_document_waits_for_its_stop(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        broker(one)
        (one.log_dirs[1] / ".lock").touch()
        path = put(one, "1.json", WITHOUT_GONE)
        put(one, "0.json", b"{")
        with held(one.log_dirs[1] / ".lock"):
            one.start()
            line = (
                f"request-waiting: {path}: expected a stopped broker: a change needs Kafka's locks, "
                "found a broker that runs; nothing to do: the document waits for the broker's stop"
            )
            until("status says so", lambda: waiting(one) == [line])
            # What is no document need not wait.
            assert lie(one) == {"inbox": ["1.json"], "done": [], "refused": ["0.json", "0.json.error"], "running": []}
            assert one.staged(1) == []
        until_handled(one, done=1, refused=1)
        assert one.staged(1) == [f"{GONE}_0", f"{GONE}_1"]
        until("nothing waits", lambda: waiting(one) == [])


def test_a01_a_document_that_waited_stages_nothing_that_was_created_meanwhile(tmp_path: Path) -> None:
    """The broker removes ``gone-0`` and creates the topic anew, while the request by name waits for its stop."""
    day_s, hour_s = 24 * 60 * 60, 60 * 60
    by_name = document(stopped(delete=True, gone=(None, (0,))), api="StopReplica", sequence=7)
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        broker(one)
        (one.log_dirs[1] / ".lock").touch()
        with held(one.log_dirs[1] / ".lock"):
            path = put(one, "7.json", by_name)
            os.utime(path, (time.time() - day_s,) * 2)
            one.start()
            until("it waits", lambda: bool(waiting(one)))
            shutil.rmtree(one.log_dirs[1] / "gone-0")
            age(one.make("gone", 0, disk=1, topic_id=OTHER), at_s=int(time.time()) - hour_s)
            put(one, "8.json", document(listed(pay=(TOPIC_ID, (0,))), type=INCREMENTAL, sequence=8))
            assert lie(one)["inbox"] == ["7.json", "8.json"]
        until("both are handled", lambda: lie(one)["inbox"] == lie(one)["running"] == [])
        assert error_of(one, "7.json").startswith("replica-too-young: ")
        assert (one.staged(1), (one.log_dirs[1] / "gone-0").is_dir()) == ([], True)
        # No move within the inbox dates a document anew.
        refused = one.folder / "state" / "inbox" / "refused" / "7.json"
        assert time.time() - refused.stat().st_mtime > day_s - hour_s


def test_a22_on_a_stopped_broker_it_is_followed_only_if_the_configuration_allows_it(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        broker(one)
        one.config.write_text(one.config.read_text().replace("auto.while.stopped: true", "auto.while.stopped: false"))
        path = put(one, "1.json", WITHOUT_GONE)
        one.start()
        fix = f"logdirctl reconcile --from request:{path} --config {one.config} --apply"
        line = (
            f"request-waiting: {path}: expected auto.while.stopped: true, to follow it without an operator, "
            f"found auto.while.stopped: false; {fix}"
        )
        until("status says so", lambda: waiting(one) == [line])
        assert (lie(one)["inbox"], one.staged(1)) == (["1.json"], [])
        # The operator does it; then there is nothing left in the document.
        assert ctl(*fix.split()[1:]).status == Exit.DONE
        assert one.staged(1) == [f"{GONE}_0", f"{GONE}_1"]


def test_a_document_that_was_cut_off_is_followed_again(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        broker(one)
        path = put(one, "1.json", WITHOUT_GONE)
        (path.parent / ".running").mkdir()
        path.rename(path.parent / ".running" / "1.json")
        one.start()
        until_handled(one, done=1)
        assert one.staged(1) == [f"{GONE}_0", f"{GONE}_1"]
        assert lie(one)["running"] == []


@pytest.mark.slow
def test_killed_at_any_moment_the_end_is_the_same(tmp_path: Path) -> None:
    draw = random.Random(516)
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        broker(one)
        put(one, "1.json", WITHOUT_GONE)
        for _ in range(4):
            one.start(is_awaited=False)
            time.sleep(draw.uniform(0.5, 2.5))
            one.stop(signal.SIGKILL)
        one.start()
        until_handled(one, done=1)
        assert one.staged(1) == [f"{GONE}_0", f"{GONE}_1"]
        assert position(one) == (5, 1)
        assert sorted(path.name for path in one.log_dirs[0].iterdir() if path.is_dir()) == sorted(
            f"pay-{number}" for number in EVERY
        )


def _half(path: Path) -> None:
    path.write_text(json.dumps(WITHOUT_GONE)[:100])


def _gigabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


def _link(path: Path) -> None:
    target = path.parents[2] / "elsewhere.json"
    target.write_text(json.dumps(WITHOUT_GONE))
    path.symlink_to(target)


def _directory(path: Path) -> None:
    path.mkdir()
    (path / "1.json").write_text(json.dumps(WITHOUT_GONE))


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "garbage": (lambda path: path.write_bytes(bytes(range(256))), "malformed-file: {}: expected one JSON object"),
    "nothing": (lambda path: path.write_bytes(b""), "malformed-file: {}: expected one JSON object"),
    "half a file": (_half, "malformed-file: {}: expected one JSON object"),
    "deep": (lambda path: path.write_text("[" * 100_000), "malformed-file: {}: expected one JSON object"),
    "another object": (lambda path: path.write_text("{}"), "malformed-file: {}: "),
    "a gibibyte": (_gigabyte, "file-too-large: {}: expected a request document of at most 268435456 bytes"),
    "a link": (_link, "wrong-file-type: {}: expected a regular file, found a symbolic link"),
    "a FIFO": (os.mkfifo, "wrong-file-type: {}: expected a regular file, found a FIFO"),
    "a directory": (_directory, "wrong-file-type: {}: expected a regular file, found a directory"),
}


@pytest.mark.parametrize("is_running", [False, True])
def test_what_is_no_document_is_refused_by_name_and_changes_nothing(tmp_path: Path, *, is_running: bool) -> None:
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        broker(one)
        (one.log_dirs[1] / ".lock").touch()
        inbox = one.folder / "state" / "inbox"
        inbox.mkdir(parents=True)
        for number, (make, _) in enumerate(HOSTILE.values()):
            make(inbox / f"{number}.json")
        (inbox / os.fsdecode(b"\xff.json")).write_text(json.dumps(WITHOUT_GONE))
        (inbox / f"{'x' * 250}.json").write_text("{")
        (inbox / ".hidden.json").write_text("{")
        (inbox / "other.txt").write_text("not looked at")
        before = tree(*one.log_dirs)
        with held(one.log_dirs[1] / ".lock" if is_running else tmp_path / "free"):
            one.start()
            until_handled(one, refused=len(HOSTILE) + 2)
            for number, (_, start) in enumerate(HOSTILE.values()):
                line = error_of(one, f"{number}.json")
                assert line.startswith(start.format(inbox / f"{number}.json")), line
                assert line.count("\n") == 1
            assert one.state() == "RUNNING"
        assert tree(*one.log_dirs) == before
        assert sorted(lie(one)["inbox"]) == [".hidden.json", "other.txt"]
        assert (inbox / "refused" / "6.json").is_symlink()


LOOK = """
import sys
from logdir.daemon.inbox.folder import Inbox
from logdir.errors import LogDirError
try:
    Inbox(sys.argv[1]).require_document("1.json")
except LogDirError as error:
    print(error)
"""


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "inbox" / "1.json"
    path.parent.mkdir()
    path.write_text(json.dumps(WITHOUT_GONE))
    path.chmod(0)
    command = [sys.executable, "-c", LOOK, str(tmp_path)]
    if os.geteuid() == 0:  # Without capabilities root may not read what its mode forbids.
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"no-permission: {path}: expected a file that can be read, found Permission denied; "
        "make it readable for the owner of the log dirs, and put it into the inbox again\n"
    )


def test_documents_that_wait_are_looked_at_once_and_many_hold_up_no_capture(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        broker(one)
        for sequence in range(1, 101):
            put(one, f"{sequence:03}.json", WITH_GONE | {"sequence": sequence})
        (one.log_dirs[1] / ".lock").touch()
        with held(one.log_dirs[1] / ".lock"):
            one.start()
            one.delete(one.make("new", 0, topic_id=OTHER))
            until("it is captured", lambda: one.status().captured == 1)
            assert len(lie(one)["inbox"]) == 100


@pytest.mark.parametrize("folder", ["inbox", "inbox/done", "inbox/refused", "inbox/.running"])
def test_a_link_in_place_of_a_directory_is_not_followed(tmp_path: Path, folder: str) -> None:
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "1.json").write_text("{")
        place = one.folder / "state" / folder
        place.parent.mkdir(parents=True)
        place.symlink_to(tmp_path / "elsewhere")
        one.start()
        until("status says so", lambda: any(line.startswith("inbox-unusable: ") for line in waiting(one)))
        assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == ["1.json"]
        one.delete(one.make())
        until("captures go on", lambda: one.status().captured == 1)


def test_what_the_staging_limit_holds_back_is_refused_with_the_way_on(tmp_path: Path) -> None:
    with daemon(tmp_path, more=SWEEP) as one:
        for number in range(4):
            age(partition(one.log_dirs[0] / f"gone-{number}", topic_id=GONE))
        age(one.make())
        put(one, "1.json", document(listed(pay=(TOPIC_ID, (0,))), type=FULL, sequence=1))
        until_handled(one, refused=1)
        assert error_of(one, "1.json").startswith(("over-staging-limit: ", "whole-topic-unproven: "))
        assert "--even-over-limit" in error_of(one, "1.json")
        assert one.staged() == []


@pytest.mark.slow
def test_a03_with_a_lost_record_documents_are_refused_with_what_confirms_one(tmp_path: Path) -> None:
    """What lies in ``done`` is put in again: none of it acts."""
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        broker(one)
        lost = Path(f"{one.log_dirs[1]}.logdird/controller.json")
        lost.write_bytes(lost.read_bytes()[:40])
        one.start()
        way_out = "logdirctl reconcile --from {} --even-if-older-metadata --apply"
        until("status says so", lambda: any(way_out.format("URI") in line for line in waiting(one)))
        for sequence in (1, 2):
            put(one, f"{sequence}.json", WITHOUT_GONE | {"sequence": sequence})
            until_handled(one, refused=sequence)
            assert way_out.format("request:FILE") in error_of(one, f"{sequence}.json")
        assert (one.staged(1), position(one)) == ([], None)
        refused = f"request:{one.folder}/state/inbox/refused/2.json"
        words = ("reconcile", "--from", refused, "--config", one.config, "--even-if-older-metadata", "--apply")
        assert ctl(*words).status == Exit.DONE
        assert (one.staged(1), position(one)) == ([f"{GONE}_0", f"{GONE}_1"], (5, 2))
        until("nothing waits", lambda: waiting(one) == [])


@pytest.mark.slow
def test_a_request_after_a_missed_one_lets_the_status_ask_for_a_full_one(tmp_path: Path) -> None:
    with daemon(tmp_path, more=SWEEP) as one:
        broker(one)

        def slugs() -> set[str]:
            return {problem.slug for problem in one.status().waiting}

        put(one, "1.json", WITH_GONE)
        until_handled(one, done=1)
        assert "full-request-needed" not in slugs()
        put(one, "2.json", document(listed(pay=(TOPIC_ID, EVERY)), type=INCREMENTAL, sequence=4))
        until_handled(one, done=2)
        until("it is asked for", lambda: "full-request-needed" in slugs())
        put(one, "3.json", document(listed(pay=(TOPIC_ID, EVERY), gone=(GONE, (0, 1, 2))), type=FULL, sequence=5))
        until_handled(one, done=3)
        until("it is asked for no more", lambda: "full-request-needed" not in slugs())
