"""Strays over every kind of directory, id, name and trouble: a proof is shown where there is one, and nowhere else."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from logdir.decide.reconcile_action import StageReplica
from logdir.decide.strays import State
from logdir.evidence import Removed
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import Replica
from tests.logdir.cluster.log_dir import change, remove
from tests.logdir.decide.stray_scene import a_log, renamed, request_image, view
from tests.reconcile.disk import disk
from tests.reconcile.scene import A0, A, B, later, raw
from tests.reconcile.stories import reconcile, up_to


def _everything() -> Iterator[Replica]:
    """Every kind, id and name that a directory can have, with and without trouble."""
    numbers = itertools.count()
    for kind, name, topic_id, problems in itertools.product(
        (Kind.LIVE, Kind.FUTURE, Kind.DELETE, Kind.STRAY),
        ("a", "b", "nobody"),
        (A, B, A0, None),
        ((), ("unreadable",), ("symlink",), ("partition-metadata-broken",), ("name-truncated",)),
    ):
        number = next(numbers)
        for index in (0, 1, 7):
            one = renamed(kind, name, topic_id, index, problems=problems)
            yield replace(one, path=f"{number}/{one.path}" if kind is not Kind.LIVE else f"{number}/{name}-{index}")


def test_a_proof_is_shown_only_where_a_removal_was_seen_and_reconcile_agrees(tmp_path: Path) -> None:
    """Over every kind, id, name and trouble, with images that saw a removal, silence, and nothing at all."""
    log = a_log(tmp_path)
    log.append(remove(raw(A)), change(raw(B), 1, replicas=(2, 3), isr=(2, 3), leader=2))
    later(log)
    seen = up_to(log)
    silent = replace(seen, removed={}, left={})
    conflicting = replace(request_image(silent=False), as_of_ms=seen.as_of_ms)
    full = replace(request_image(), as_of_ms=seen.as_of_ms)
    count = 0
    proven = dict.fromkeys(("seen", "silent", "mute", "full"), 0)
    for replica in _everything():
        for name, image in (("seen", seen), ("silent", silent), ("mute", conflicting), ("full", full)):
            facts = (disk(replica),)
            plan = reconcile(image, *facts)
            staged = {action.path for action in plan.actions if isinstance(action, StageReplica)}
            for stray in view(image, *facts).strays:
                count += 1
                is_shown_as_proof = isinstance(stray.evidence, Removed)
                assert is_shown_as_proof == (stray.state in (State.PROVEN, State.REFUSED))
                assert (stray.missing is None) == (stray.state in (State.PROVEN, State.HELD, State.LEAVING))
                if stray.kind is Kind.LIVE:
                    assert (stray.state in (State.PROVEN, State.HELD)) == (stray.path in staged)
                else:
                    assert stray.path not in staged
                if name in ("silent", "mute"):
                    assert not is_shown_as_proof
                proven[name] += stray.state is State.PROVEN
            if name == "mute":
                assert {one.state for one in view(image, *facts).strays} <= {State.UNKNOWN, State.LEAVING}
    assert count > 1000
    assert (proven["silent"], proven["mute"]) == (0, 0)
    assert min(proven["seen"], proven["full"]) > 10
