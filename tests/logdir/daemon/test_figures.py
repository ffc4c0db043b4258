"""What the status shows beyond its table: figures by kind, windows of undo, how far the metadata log was followed."""

from __future__ import annotations

from dataclasses import replace

from logdir.cluster.image import Image, Source
from logdir.daemon.figures import Figures, kinds_of
from logdir.daemon.look import Look, Staged
from logdir.daemon.report.figures import KindFigures, UndoWindow
from logdir.daemon.report.status import LogDirStatus
from logdir.daemon.state import LogDirState
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts, StagedReplica
from logdir.reasons import Reason
from tests.logdir.decide.builders import HOUR_MS, ID, MARKER, NOW, OTHER_ID, WALL_MS, facts, replica, staged_replicas

PROBLEM = Problem("log-dir-offline", "/d1", "a log dir that can be read", "none")


def online(log_dir: str = "/d1") -> LogDirStatus:
    return LogDirStatus(log_dir=log_dir, state=LogDirState.ONLINE)


def shown(figures: Figures, found: LogDirFacts, read_at_ms: dict[str, int]) -> tuple[dict[str, tuple[int, int]], int]:
    """Return entries and bytes by kind, and when the log dir was read."""
    (one,) = figures.with_kinds([online(found.log_dir)], [found], read_at_ms)
    return {kind.kind.value: (kind.entries, kind.log_bytes) for kind in one.kinds}, one.read_at_ms or 0


def test_directories_are_counted_by_kind_in_the_order_of_kinds() -> None:
    replicas = (
        replica("orders-0", log_bytes=10),
        replica("orders-1", log_bytes=None, kind=Kind.STRAY),
        replica("orders-2", log_bytes=5),
    )
    staged = (staged_replicas(log_bytes=7), staged_replicas(kind=Kind.PURGING, log_bytes=1))
    assert kinds_of(replicas, staged) == (
        KindFigures(kind=Kind.LIVE, entries=2, log_bytes=15),
        KindFigures(kind=Kind.STRAY, entries=1, log_bytes=0),
        KindFigures(kind=Kind.STAGED, entries=1, log_bytes=7),
        KindFigures(kind=Kind.PURGING, entries=1, log_bytes=1),
    )
    assert kinds_of((), ()) == ()


def test_what_comes_and_goes_is_counted_without_another_full_reading() -> None:
    figures = Figures()
    first = facts(replica("orders-0", log_bytes=10), replica("orders-1", log_bytes=20))
    assert shown(figures, first, {"/d1": 5}) == ({"live": (2, 30)}, 5)
    captured = replace(first, replicas=first.replicas[:1], staged=(staged_replicas(log_bytes=20),))
    assert shown(figures, captured, {"/d1": 5}) == ({"live": (1, 10), "staged": (1, 20)}, 5)
    purged = replace(captured, staged=())
    assert shown(figures, purged, {"/d1": 9}) == ({"live": (1, 10)}, 9)


def test_a_log_dir_that_cannot_be_read_keeps_what_was_there_and_when_it_was_read() -> None:
    figures = Figures()
    shown(figures, facts(replica(log_bytes=10)), {"/d1": 5})
    assert shown(figures, facts(problem=PROBLEM), {}) == ({"live": (1, 10)}, 5)
    # In another session it is read again.
    assert shown(figures, facts(), {"/d1": 8}) == ({}, 8)


def test_one_that_was_never_read_shows_nothing() -> None:
    assert shown(Figures(), facts(problem=PROBLEM), {}) == ({}, 0)


def test_what_has_not_changed_is_not_counted_again() -> None:
    figures, found = Figures(), facts(replica(log_bytes=10))
    (before,) = figures.with_kinds([online()], [found], {})
    (after,) = figures.with_kinds([online()], [replace(found, node_id=2)], {})
    assert after.kinds is before.kinds


def at(**staged: tuple[tuple[StagedReplica, int | None], ...]) -> Look:
    """Return a look at log dirs, with staged replicas and their deadlines on the boot-time clock."""
    found = {
        f"/{name}": Staged(tuple(item for item, _ in items), tuple(due_ms for _, due_ms in items))
        for name, items in staged.items()
    }
    return Look(NOW, (), {}, (), found)


SOON, LATER = NOW.boottime_ms + HOUR_MS, NOW.boottime_ms + 2 * HOUR_MS


def test_the_replicas_of_a_topic_are_one_window_over_all_disks() -> None:
    first = staged_replicas(log_bytes=10)
    second = staged_replicas(replace(MARKER, partition=4, staged_at_ms=WALL_MS - 5), log_bytes=20)
    third = staged_replicas(replace(MARKER, partition=5), log_bytes=None)
    windows, left_out = Figures().windows(at(d1=((first, LATER), (third, LATER)), d2=((second, SOON),)))
    assert (windows, left_out) == (
        (
            UndoWindow(
                topic="orders",
                topic_id=ID,
                reason=Reason.OPERATOR,
                replicas=3,
                log_bytes=30,
                log_dirs=("/d1", "/d2"),
                staged_at_ms=WALL_MS - 5,
                due_ms=WALL_MS + HOUR_MS,
            ),
        ),
        0,
    )


def test_topics_ids_reasons_and_held_ones_are_windows_of_their_own() -> None:
    items = (
        (staged_replicas(), SOON),
        (staged_replicas(replace(MARKER, topic_id=OTHER_ID)), SOON),
        (staged_replicas(replace(MARKER, reason=Reason.CAPTURED)), SOON),
        (staged_replicas(), None),
        (staged_replicas(marker=MARKER, topic="pay"), SOON),
        (replace(staged_replicas(), marker=None), None),
    )
    windows, _ = Figures().windows(at(d1=items))
    assert len(windows) == 6
    assert {(one.reason, one.staged_at_ms) for one in windows if one.due_ms is None} == {
        (Reason.OPERATOR, WALL_MS),
        (None, None),
    }


def test_those_that_go_first_come_first_then_held_ones_and_the_rest_is_counted() -> None:
    def one(topic: str, due_ms: int | None, staged_at_ms: int = WALL_MS) -> tuple[StagedReplica, int | None]:
        return staged_replicas(replace(MARKER, staged_at_ms=staged_at_ms), topic=topic), due_ms

    look = at(d1=(one("held", None), one("old", None, 7), one("late", LATER), one("soon", SOON), one("also", SOON)))
    windows, left_out = Figures().windows(look)
    assert [window.topic for window in windows] == ["also", "soon", "late", "old", "held"]
    windows, left_out = Figures().windows(look, most=2)
    assert ([window.topic for window in windows], left_out) == (["also", "soon"], 3)


def test_what_could_have_gone_already_goes_now() -> None:
    windows, _ = Figures().windows(at(d1=((staged_replicas(), NOW.boottime_ms - HOUR_MS),)))
    assert windows[0].due_ms == WALL_MS


def test_claimed_replicas_and_unfinished_copies_cannot_be_undone() -> None:
    items = staged_replicas(kind=Kind.PURGING), staged_replicas(), staged_replicas(kind=Kind.INCOMING)
    windows, _ = Figures().windows(Look(NOW, (), {}, (), {"/d1": Staged(items, (SOON,))}))
    assert [one.replicas for one in windows] == [1]


def test_windows_follow_each_change() -> None:
    figures, item = Figures(), staged_replicas()
    before = at(d1=((item, SOON),))
    assert figures.windows(before)[0][0].due_ms == WALL_MS + HOUR_MS
    # An hour later, by the same deadline.
    later = before._replace(now=NOW._replace(boottime_ms=SOON, wall_ms=WALL_MS + HOUR_MS))
    assert figures.windows(later)[0][0].due_ms == WALL_MS + HOUR_MS
    # It is held now, by the same marker as read.
    held = before._replace(staged={"/d1": before.staged["/d1"]._replace(deadlines=(None,))})
    assert figures.windows(held)[0][0].due_ms is None
    assert figures.windows(at(d1=())) == ((), 0)
    assert figures.windows(before)[0][0].due_ms == WALL_MS + HOUR_MS


def image(offset: int, origin: str = "/m", source: Source = Source.METADATA_LOG) -> Image:
    return Image(source=source, origin=origin, node_id=1, cluster_id=None, offset=offset)


def test_the_lag_is_what_lies_behind_the_last_record_that_was_followed() -> None:
    assert Figures().metadata_lag is None
    figures = Figures()
    figures.note_log(image(100), (image(130), image(500, "/left-behind")), None)
    assert figures.metadata_lag == 30
    figures.note_log(image(100), (image(130),), 150)
    assert figures.metadata_lag == 50
    # A log that cannot be used, or is no log, leaves it as it was.
    figures.note_log(None, (image(500),), None)
    figures.note_log(image(100, source=Source.LIVE_CLUSTER), (image(500),), None)
    figures.note_log(image(100), (), None)
    assert figures.metadata_lag == 50
    figures.note_offset(200, 190)
    assert figures.metadata_lag == 0
