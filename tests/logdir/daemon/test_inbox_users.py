"""The inbox is for root and the owner of the log dirs: no document that another user could have written is followed.

Not here: the control socket (``test_control``), what else is refused in the inbox (``test_inbox``).
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from logdir.daemon.inbox.folder import Inbox
from logdir.errors import RefusedError
from logdir.refusal_slug import Why
from tests.logdir.daemon.rig import Daemon, daemon, unchanged, until
from tests.logdir.daemon.test_inbox import (
    SWEEP,
    WITHOUT_GONE,
    broker,
    error_of,
    lie,
    position,
    put,
    until_handled,
    waiting,
)
from tests.proof.daemon_claims import OTHER_USERS
from tests.proof.plugin import Recorder
from tests.tools.ctl import held
from tests.tools.reconcile_rig import GONE
from tests.whole_refusal import require_whole

NOBODY = 65534
needs_root = pytest.mark.root
FIX = "look at it; then give it to the owner of the log dirs, chmod go-w, and put it into the inbox again"
DIRECTORY_FIX = "give it to the owner of the log dirs, chmod go-w, or remove it"
DIRECTORY = "expected a directory for requests, which only root and the owner of the log dirs can write"
EXPECTED = "a document that only root and the owner of the log dirs can write"


def as_user(user: int, group: int, act: Callable[[], object]) -> str:
    """Do something as another user, in a process of its own; return the name of the error, or nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresgid(group, group, group)
            os.setresuid(user, user, user)
            act()
        except OSError as error:
            os.write(writing, errno.errorcode[error.errno or 0].encode())
        except BaseException:  # noqa: BLE001 - nothing but its name leaves this process
            os.write(writing, b"another error")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answered:
        name = answered.read().decode()
    os.waitpid(child, 0)
    return name


def test_the_directories_of_the_inbox_are_written_by_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Inbox(str(tmp_path)).names()
    finally:
        os.umask(before)
    inbox = tmp_path / "inbox"
    found = {path.name: path.stat().st_mode & 0o7777 for path in (inbox, *inbox.iterdir())}
    assert found == {"inbox": 0o750, ".running": 0o700, "done": 0o750, "refused": 0o750}


@pytest.mark.parametrize("mode", [0o664, 0o666, 0o646, 0o620])
def test_a_document_that_others_can_write_is_refused_also_in_the_place_where_it_is_followed(
    tmp_path: Path, mode: int
) -> None:
    inbox = Inbox(str(tmp_path))
    inbox.names()
    path = tmp_path / "inbox" / "1.json"
    path.write_text(json.dumps(WITHOUT_GONE))
    path.chmod(0o644)
    inbox.require_document("1.json")
    path.chmod(mode)
    for check in (inbox.require_document, inbox.take):
        with pytest.raises(RefusedError) as caught:
            check("1.json")
        require_whole(
            caught.value,
            Why.FILE_NOT_PROTECTED,
            path=str(path),
            expected="a document that only root and the owner of the log dirs can write",
            found=f"one of mode {mode:04o}",
            fix=FIX,
        )


@pytest.mark.parametrize(
    ("place", "mode", "found"),
    [
        ("inbox", 0o770, "of mode 0770: others can write there"),
        ("inbox", 0o757, "of mode 0757: others can write there"),
        ("inbox/.running", 0o777, "\\.running of mode 0777: others can write there"),
    ],
)
def test_no_document_is_taken_where_others_can_write(tmp_path: Path, place: str, mode: int, found: str) -> None:
    inbox = Inbox(str(tmp_path))
    inbox.names()
    (tmp_path / "inbox" / "1.json").write_text(json.dumps(WITHOUT_GONE))
    (tmp_path / place).chmod(mode)
    for check in (inbox.names, lambda: inbox.require_document("1.json"), lambda: inbox.take("1.json")):
        with pytest.raises(PermissionError, match=f"{found}$"):
            check()


@needs_root
def test_another_user_of_the_same_group_can_do_nothing_in_the_inbox(record_proof: Recorder) -> None:
    """Neither put a document, nor take, change or swap one that waits, nor reach the one that is followed."""
    if os.geteuid() != 0:
        pytest.skip("needs root: acts as another user")
    with (
        tempfile.TemporaryDirectory(prefix="logdird-") as name,
        daemon(Path(name), is_started=False, more=SWEEP) as one,
    ):
        Path(name).chmod(0o755)
        broker(one)
        (one.log_dirs[1] / ".lock").touch()
        with held(one.log_dirs[1] / ".lock"):
            one.start()
            path = put(one, "1.json", WITHOUT_GONE)
            until("it waits", lambda: "request-waiting" in {problem.slug for problem in one.status().waiting})
            inbox = path.parent
            mine = Path(name) / "mine.json"
            mine.write_text(json.dumps(WITHOUT_GONE))
            os.chown(mine, NOBODY, 0)
            acts: dict[str, Callable[[], object]] = {
                "write": (inbox / "2.json").touch,
                "write under a hidden name": (inbox / ".2.json").touch,
                "rename into it": lambda: mine.rename(inbox / "2.json"),
                "link into it": lambda: (inbox / "2.json").hardlink_to(mine),
                "link what is there": lambda: (inbox / "2.json").hardlink_to(path),
                "a symbolic link": lambda: (inbox / "2.json").symlink_to(mine),
                "replace what waits": lambda: mine.replace(path),
                "change what waits": lambda: path.open("r+"),
                "take what waits": lambda: path.rename(inbox / "done" / "1.json"),
                "remove what waits": path.unlink,
                "put into the place of the one that is followed": (inbox / ".running" / "2.json").touch,
                "look into that place": lambda: os.listdir(inbox / ".running"),
                "let another directory be the inbox": lambda: inbox.rename(inbox.with_name("old")),
            }
            before = unchanged(one), lie(one)
            for act in acts.values():
                mine.parent.chmod(0o777)  # A rename must not fail for where it comes from.
                assert as_user(NOBODY, 0, act) in ("EACCES", "EPERM")
            mine.parent.chmod(0o755)
            assert (unchanged(one), lie(one)) == before
            # Of another group it does not even see what is there.
            assert as_user(NOBODY, NOBODY, lambda: os.listdir(inbox)) == "EACCES"
            assert as_user(0, 0, lambda: os.listdir(inbox)) == ""
        until_handled(one, done=1)
        assert one.staged(1) == [f"{GONE}_0", f"{GONE}_1"]
    record_proof(OTHER_USERS, {"attempts at the inbox": len(acts)})


def _of_nobody(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)


def _of_the_group(path: Path) -> None:
    path.chmod(0o664)


def _of_all(path: Path) -> None:
    path.chmod(0o666)


def _a_link(path: Path) -> None:
    target = path.with_name(".target")
    path.rename(target)
    path.symlink_to(target)
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


DOCUMENTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "of another user": (
        _of_nobody,
        f"file-not-protected: {{}}: expected {EXPECTED}, found one of user 65534; {FIX}",
    ),
    "that the group can write": (
        _of_the_group,
        f"file-not-protected: {{}}: expected {EXPECTED}, found one of mode 0664; {FIX}",
    ),
    "that everybody can write": (
        _of_all,
        f"file-not-protected: {{}}: expected {EXPECTED}, found one of mode 0666; {FIX}",
    ),
    "a link of another user": (_a_link, "wrong-file-type: {}: expected a regular file, found a symbolic link; "),
}
PLACES = {
    "that the group can write": (0, 0o770, "of mode 0770: others can write there"),
    "that everybody can write": (0, 0o777, "of mode 0777: others can write there"),
    "of another user": (NOBODY, 0o750, "of user 65534: others can write there"),
}
"""Owner and mode of the inbox, and how the daemon names them."""


@needs_root
def test_a_document_that_another_user_could_have_written_is_never_followed(record_proof: Recorder) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: makes files of another user")
    with (
        tempfile.TemporaryDirectory(prefix="logdird-") as name,
        daemon(Path(name), is_started=False, more=SWEEP) as one,
    ):
        broker(one)
        inbox = one.folder / "state" / "inbox"
        for number, (spoil, _) in enumerate(DOCUMENTS.values()):
            spoil(_put(one, number))
        one.start()
        before = unchanged(one)
        until_handled(one, refused=len(DOCUMENTS))
        for number, (_, line) in enumerate(DOCUMENTS.values()):
            said = error_of(one, f"{number}.json")
            assert said.startswith(line.format(inbox / f"{number}.json")), said
            assert said.count("\n") == 1
        # In a place that others can write nothing is followed, whosever the document is.
        for owner, mode, found in PLACES.values():
            os.chown(inbox, owner, 0)
            inbox.chmod(mode)
            line = f"inbox-unusable: {inbox}: {DIRECTORY}, found {found}; {DIRECTORY_FIX}"
            until("status says so", lambda: line in waiting(one))  # noqa: B023 - at once
            if mode == 0o770:
                _put(one, 9)
            looked_at_ms = one.status().looked_at_ms
            until("it looks again", lambda: one.status().looked_at_ms != looked_at_ms)  # noqa: B023 - called at once
            assert (position(one), one.staged(1), (inbox / "9.json").exists()) == (None, [], True)
        assert unchanged(one) == before
        os.chown(inbox, 0, 0)
        until_handled(one, done=1, refused=len(DOCUMENTS))
        assert one.staged(1) == [f"{GONE}_0", f"{GONE}_1"]
    record_proof(OTHER_USERS, {"documents and inboxes": len(DOCUMENTS) + len(PLACES)})


def _put(one: Daemon, number: int) -> Path:
    path = put(one, f"{number}.json", WITHOUT_GONE)
    path.chmod(0o644)
    return path
