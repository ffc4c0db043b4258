"""The places of the control socket's clients: 64, of which one is kept for the owner and root."""

from __future__ import annotations

from logdir.daemon.socket.connections import MOST_CLIENTS
from logdir.daemon.socket.places import Places


def full(*, may_change: bool) -> Places[int]:
    """Return places of which as many are taken as such clients may take: by 0, 1, 2, …"""
    places: Places[int] = Places(MOST_CLIENTS)
    number = 0
    while places.take(number, may_change=may_change):
        number += 1
    return places


def test_the_last_place_is_kept_for_one_who_may_change_something() -> None:
    places = full(may_change=False)
    assert len(places) == 63
    for client in range(63):
        places.keep(client)
    assert places.drop_slowest() is None
    assert places.take(100, may_change=True)
    assert not places.take(101, may_change=True)


def test_the_slowest_client_loses_its_place_once() -> None:
    places = full(may_change=True)
    assert len(places) == 64
    places.keep(0)
    assert [places.drop_slowest(), places.drop_slowest()] == [1, 2]
    assert not places.take(100, may_change=True)  # They have not left yet.
    places.leave(1)
    places.leave(1)
    assert places.take(100, may_change=True)
    assert len(places) == 64


def test_a_client_that_takes_its_answer_can_lose_its_place_again_after_the_others() -> None:
    places = full(may_change=True)
    places.keep(0)
    places.wait_for(0)
    assert [places.drop_slowest() for _ in range(64)] == [*range(1, 64), 0]


def test_clients_that_may_change_nothing_lose_their_places_first() -> None:
    places: Places[str] = Places(MOST_CLIENTS)
    for name, may_change in (("root", True), ("group", False), ("owner", True)):
        assert places.take(name, may_change=may_change)
    assert [places.drop_slowest() for _ in range(4)] == ["group", "root", "owner", None]


def test_a_client_that_has_left_is_awaited_no_more() -> None:
    places: Places[str] = Places(MOST_CLIENTS)
    places.wait_for("gone")
    assert places.drop_slowest() is None
