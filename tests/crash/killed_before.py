"""Operations of the successor of a process that was killed before a sync: it sees what that one did, and goes on.

What is not durable yet looks as if it were; whatever the successor says is done has to last all the same.

Not here: operations that find everything durable (``operations``).

Spec: design §2 laws 2, 3; reliability §4.4.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from logdir.disk.recover_log_dir import recover
from logdir.disk.replica.purge import remove, remove_all
from logdir.disk.replica.replica_dir import NEW_MARKER
from logdir.formats.own import replica_marker
from tests.crash.starts import FILE, ONE, A, B, marker_for, staged, start
from tests.crash.steps import Operation, Steps, nobody, operation_of, replica_of


def purge_after_a_killed_claim(name: str, *, is_recovered: bool) -> Operation:
    """The successor of a process killed between its claim and the sync sees what is claimed, and removes it."""

    def do(steps: Steps) -> None:
        open_dir = steps.open_dirs.of(A)
        claimed = f"{A.place}.purging"
        with suppress(OSError):
            open_dir.deleting.rename(A.place, open_dir.deleting, claimed)
            if is_recovered:
                recover(open_dir)
                remove(open_dir, claimed, in_use=nobody)
            else:
                (outcome,) = remove_all(open_dir, [claimed], in_use=nobody)
                if outcome.error is not None:
                    # What is claimed stays claimed then, nothing is acknowledged. A kernel's calls are not recorded.
                    records = getattr(steps.host, "records", None)
                    assert records is None or any(made.errno for made in records), outcome.error
                    return
            # Whoever was killed had claimed it; that is said with the removal, not before.
            steps.reached[A.key] = 1
            steps.say(A, True)

    replica = replace(replica_of(A, "staged", "claimed", "gone", is_staged=True), is_claimed_before=True)
    return operation_of(name, staged(A, files=ONE), do, replica)


def hold_after_a_killed_stage(name: str) -> Operation:
    """The successor of a process killed between its rename and the sync sees what is staged, and holds it."""

    def do(steps: Steps) -> None:
        open_dir = steps.open_dirs.of(B)
        with suppress(OSError):
            marker = marker_for(open_dir, B)
            with open_dir.top.open(B.path) as directory:
                directory.write("replica.json", replica_marker.render(marker), FILE)
            open_dir.top.sync_disk()
            open_dir.top.rename(B.path, open_dir.deleting, B.place)
            recover(open_dir)
            steps.say(B, True)
            steps.hold(B)

    return operation_of(name, start(B), do, replica_of(B, "live", "staged", "held"))


def hold_after_a_killed_hold(name: str) -> Operation:
    """The successor of a process killed between its new marker's rename and the sync sees it held, and holds it."""

    def do(steps: Steps) -> None:
        with suppress(OSError):
            with steps.open_dirs.of(A).deleting.open(A.place) as directory:
                marker = replace(steps.open_dirs.marker(A), delay_ms=None)
                directory.write(NEW_MARKER, replica_marker.render(marker), FILE)
                directory.sync_file(NEW_MARKER)
                directory.replace(NEW_MARKER, replica_marker.FILE_NAME)
            steps.hold(A)

    return operation_of(name, staged(A), do, replica_of(A, "staged", "held", is_staged=True))
