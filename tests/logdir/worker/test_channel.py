"""Frames: whole or not yet there, however the bytes come in; descriptors come along."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.worker.channel import Inbox, frame, receive

_VALUES = st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5)


@given(st.lists(_VALUES, max_size=4), st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_values_come_out_in_order_however_the_bytes_are_cut(values: list[Any], cuts: list[int]) -> None:
    data = b"".join(map(frame, values))
    inbox, at, number = Inbox(), 0, 0
    found: list[object] = []
    while at < len(data):
        size = cuts[number % len(cuts)]
        found += inbox.add(data[at : at + size])
        at, number = at + size, number + 1
    assert found == values


def test_a_frame_longer_than_any_of_ours_is_refused_before_it_is_waited_for() -> None:
    with pytest.raises(ValueError, match="a frame of"):
        list(Inbox().add((2 << 30).to_bytes(4, "big")))


def test_bytes_that_are_no_json_are_refused() -> None:
    with pytest.raises(ValueError):
        list(Inbox().add(b"\0\0\0\2no"))


def test_a_descriptor_that_is_sent_is_open_at_the_other_end_and_the_end_is_told_from_silence() -> None:
    here, there = socket.socketpair()
    reader, writer = os.pipe()
    descriptors: list[int] = []
    with here, there:
        socket.send_fds(here, [frame("x")], [writer])
        os.close(writer)
        assert receive(there, Inbox(), descriptors) == ["x"]
        (own,) = descriptors
        os.write(own, b"through")
        os.close(own)
        assert os.read(reader, 20) == b"through"
        os.close(reader)
        here.send(b"\0")
        assert receive(there, Inbox(), descriptors) == []
        here.close()
        assert receive(there, Inbox(), descriptors) is None
