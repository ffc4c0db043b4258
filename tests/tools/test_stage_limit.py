"""``logdirctl stage`` against the limit of a tenth within 24 hours: counted, remembered, and believed (A38)."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdir import clock
from logdir.clock import Instant
from logdir.disk.kernel import kernel_clock
from logdir.formats.own import staging_limit_file
from tests.builders import log_dir, partition
from tests.tools.ctl import ctl, ctl_json
from tools.cli.arguments import Exit

REPLICAS = 40
Disks = tuple[Path, Path]


@pytest.fixture
def disks(tmp_path: Path) -> Disks:
    """40 topics of one partition, 20 on each of two disks: 4 may go in a day."""
    made = log_dir(tmp_path / "d1"), log_dir(tmp_path / "d2", directory="AAAAAAAAAAAAAAAAAAAABA")
    for number in range(REPLICAS):
        partition(made[number % 2] / f"t{number:02}-0", topic_id=f"MkU3OEVBNTcwNTJENDM{number:02}A"[:22])
    assert ctl("init", *named(made), "--apply").status == Exit.DONE
    return made


def named(disks: Disks) -> tuple[str, ...]:
    return "--log-dirs", f"{disks[0]},{disks[1]}"


def records(disks: Disks) -> list[list[tuple[int, int]]]:
    """Return what each work root says: partitions and topics of each staging."""
    found = []
    for disk in disks:
        data = Path(f"{disk}.logdird", staging_limit_file.FILE_NAME).read_bytes()
        found.append([(one.partitions, one.topics) for one in staging_limit_file.parse(data)])
    return found


def live(disks: Disks) -> int:
    return sum(path.name.startswith("t") for disk in disks for path in disk.iterdir())


def staged(disks: Disks, glob: str, *more: str) -> int:
    return ctl("stage", glob, "--even-if-unknown", *named(disks), "--apply", *more).status


def test_a38_no_staging_goes_uncounted_in_any_work_root(disks: Disks) -> None:
    assert staged(disks, "t0[0-2]") == Exit.DONE
    assert live(disks) == 37
    assert records(disks) == [[(3, 3)], [(3, 3)]]


def test_a38_no_staging_is_forgotten_by_the_next(disks: Disks) -> None:
    """Three, then two: each within a tenth of 40, and both together beyond it."""
    assert staged(disks, "t0[0-2]") == Exit.DONE
    assert staged(disks, "t0[3-4]") == Exit.REFUSED
    assert (live(disks), records(disks)) == (37, [[(3, 3)], [(3, 3)]])
    assert staged(disks, "t03") == Exit.DONE
    assert staged(disks, "t04") == Exit.REFUSED
    assert staged(disks, "t04", "--even-over-limit") == Exit.DONE
    assert [sorted(one) for one in records(disks)] == [[(1, 1), (1, 1), (3, 3)]] * 2


def test_a38_no_staging_that_was_counted_is_held_back_by_its_own_count(
    disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch lets Kafka's locks go after its first step: the second disk's is decided again.

    By then the clock is synchronised no more, so that what was 25 hours ago counts again; all of it was let go before.
    """
    monkeypatch.setattr("logdir.service.log_dirs.kafka_locks.HeldLocks.expired", lambda self, now_boottime_ms: True)
    asked: list[Instant] = []

    def read_instant() -> Instant:
        now = kernel_clock.read_instant()
        asked.append(now._replace(boottime_ms=now.boottime_ms + 900_000, is_synchronised=len(asked) < 2))
        return asked[-1]

    monkeypatch.setattr("logdir.service.stage.read_instant", read_instant)
    old = staging_limit_file.Count(instant_ms=clock.now_ms() - 25 * 3_600_000, partitions=40, topics=40)
    for disk in disks:
        Path(f"{disk}.logdird", staging_limit_file.FILE_NAME).write_bytes(staging_limit_file.render((old,)))
    assert staged(disks, "t0[0-3]") == Exit.DONE
    assert (live(disks), [one.is_synchronised for one in asked]) == (36, [True, True, False])
    assert records(disks) == [[(4, 4)], [(4, 4)]]


def test_a38_what_one_work_root_remembers_is_not_forgotten_for_another_that_does_not(disks: Disks) -> None:
    assert staged(disks, "t0[0-3]") == Exit.DONE
    Path(f"{disks[0]}.logdird", staging_limit_file.FILE_NAME).write_bytes(staging_limit_file.render(()))
    assert staged(disks, "t0[4-5]") == Exit.REFUSED
    assert live(disks) == 36


@pytest.mark.parametrize("damage", ["missing", "torn"])
@pytest.mark.parametrize("number", [0, 1])
def test_a38_no_record_that_is_missing_or_torn_counts_as_empty(disks: Disks, damage: str, number: int) -> None:
    path = Path(f"{disks[number]}.logdird", staging_limit_file.FILE_NAME)
    path.unlink()
    if damage == "torn":
        path.write_bytes(b'{"staging_limit":1,"staged":[')
    status, result = ctl_json("stage", "t00", "--even-if-unknown", *named(disks), "--apply")
    assert (status, live(disks)) == (Exit.REFUSED, 40), result


def test_a38_a_record_that_cannot_be_written_in_one_work_root_lets_nothing_go(disks: Disks) -> None:
    path = Path(f"{disks[1]}.logdird", staging_limit_file.FILE_NAME)
    path.unlink()
    path.mkdir()
    assert staged(disks, "t00", "--even-over-limit") != Exit.DONE
    assert live(disks) == 40
