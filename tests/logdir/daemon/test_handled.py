"""The documents that were handled: each keeps its own name, and the oldest go once there are too many."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from logdir.daemon.inbox.folder import Inbox
from logdir.daemon.inbox.handled import MOST_BYTES, Handled
from logdir.errors import Problem

PROBLEM = Problem("malformed-file", "1.json", "a request document", "another file")


def put(state: Path, name: str = "1.json") -> str:
    path = state / "inbox" / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    return name


def names(state: Path, folder: str) -> list[str]:
    return sorted(os.listdir(state / "inbox" / folder))


def test_a_name_that_is_taken_gets_the_instant_behind_it(tmp_path: Path) -> None:
    inbox = Inbox(str(tmp_path))
    for _ in range(3):
        inbox.finish(put(tmp_path))
        inbox.refuse(put(tmp_path), [PROBLEM])
    assert re.fullmatch(r"1\.json( 1\.json\.\d{13}){2}", " ".join(names(tmp_path, "done")))
    documents = [name for name in names(tmp_path, "refused") if not name.endswith(".error")]
    assert len(documents) == 3
    assert {f"{name}.error" for name in documents} == set(names(tmp_path, "refused")) - set(documents)


def test_a_long_name_that_is_taken_is_cut(tmp_path: Path) -> None:
    inbox = Inbox(str(tmp_path))
    name = f"{'x' * 250}.json"
    for _ in range(2):
        inbox.refuse(put(tmp_path, name), [PROBLEM])
    assert [len(one) for one in names(tmp_path, "refused")] == [239, 245, 246, 255]


def test_no_document_costs_more_than_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox, stat, looks = Inbox(str(tmp_path)), os.stat, 0

    def counted(*args: Any, **options: Any) -> os.stat_result:
        nonlocal looks
        looks += 1
        return stat(*args, **options)

    inbox.finish(put(tmp_path))
    costs = []
    monkeypatch.setattr(os, "stat", counted)
    for _ in range(20):
        put(tmp_path)
        looks = 0
        inbox.finish("1.json")
        costs.append(looks)
    assert len(set(costs)) == 1


def test_the_newest_thousand_documents_are_kept(tmp_path: Path) -> None:
    inbox = Inbox(str(tmp_path))
    for number in range(1000):
        inbox.refuse(put(tmp_path, f"{number:04}.json"), [PROBLEM])
    (tmp_path / "inbox" / "refused" / "mine.txt").write_text("of somebody else")
    assert len(names(tmp_path, "refused")) == 2001
    for number in range(1000, 1010):
        inbox.refuse(put(tmp_path, f"{number:04}.json"), [PROBLEM])
    kept = names(tmp_path, "refused")
    assert (len(kept), kept[0], kept[-2:]) == (2001, "0010.json", ["1009.json.error", "mine.txt"])
    # A daemon that is started again knows their order, too.
    Inbox(str(tmp_path)).refuse(put(tmp_path, "0000.json"), [PROBLEM])
    kept = names(tmp_path, "refused")
    assert (len(kept), kept[0], kept[2]) == (2001, "0000.json", "0011.json")


def test_handled_documents_take_so_much_at_most_but_the_last_one_is_kept(tmp_path: Path) -> None:
    assert MOST_BYTES == 256 << 20
    handled, place = Handled(most_bytes=256 << 10), os.open(tmp_path, os.O_RDONLY)
    try:
        for name, size in (("1.json", 128), ("2.json", 128), ("3.json", 128), ("4.json", 300)):
            (tmp_path / name).write_bytes(bytes(size << 10))
            handled.add(place, name)
            left = sorted(os.listdir(tmp_path))
            assert left == {"1.json": ["1.json"], "4.json": ["4.json"]}.get(name, [f"{int(name[0]) - 1}.json", name])
        with (tmp_path / "5.json").open("wb") as file:
            file.truncate(1 << 30)  # A hole takes nothing.
        handled.add(place, "5.json")
        handled.add(place, handled.free_name(place, "6.json"))  # Somebody has taken it away.
        assert sorted(os.listdir(tmp_path)) == ["5.json"]
    finally:
        os.close(place)


def test_what_is_no_document_stays_whatever_its_name_ends_in(tmp_path: Path) -> None:
    inbox = Inbox(str(tmp_path))
    inbox.names()
    done = tmp_path / "inbox" / "done"
    others = {"notes.1", "backup.20261127", "1.json.old", "long" * 50}
    for name in others:
        (done / name).touch()
    long = f"{'n' * 249}.json"
    for number in range(1010):
        inbox.finish(put(tmp_path, long if number < 2 else f"{number:04}.json"))
    left = set(names(tmp_path, "done"))
    assert others < left
    assert len(left - others) == 1000
    assert not any(name.startswith("nnn") for name in left)  # The oldest, under the name with an instant, too.


def test_of_very_many_documents_some_go_with_each_that_is_handled(tmp_path: Path) -> None:
    inbox = Inbox(str(tmp_path))
    inbox.names()
    for number in range(1200):
        (tmp_path / "inbox" / "done" / f"{number:04}.json").touch()
    put(tmp_path, "new.json")
    inbox.finish("new.json")
    assert len(names(tmp_path, "done")) == 1201 - 64
    assert names(tmp_path, "done")[-1] == "new.json"
