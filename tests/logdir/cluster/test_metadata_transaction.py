"""Rows of a transaction count together once it ends, or never; what no transaction allows is refused."""

from __future__ import annotations

from typing import NoReturn

import pytest

from logdir.cluster.metadata_transaction import Transactions
from logdir.errors import MalformedFileError
from logdir.wire.metadata_fast import Row, TopicRow
from logdir.wire.metadata_records import MetadataRecord
from tests.logdir.cluster.log_dir import abort, begin, end


class Taken:
    """A fold that writes down what counts."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int]] = []
        self.transactions = Transactions(self._apply, self._refuse)

    def _apply(self, row: Row, timestamp_ms: int) -> None:
        assert isinstance(row, TopicRow)
        self.rows.append((row.name, timestamp_ms))

    def _refuse(self, expected: str, found: str, offset: int) -> NoReturn:
        raise MalformedFileError("log", expected=expected, found=f"{found} at {offset}")

    def add(self, start: int, timestamp_ms: int, *rows: str | MetadataRecord) -> None:
        made = [TopicRow(name=one, topic_id=b"") if isinstance(one, str) else one for one in rows]
        self.transactions.add(enumerate(made, start), timestamp_ms)


def test_rows_count_at_once_outside_a_transaction_and_at_its_end_within_one() -> None:
    taken = Taken()
    taken.add(0, 5, "a", begin(), "b")
    assert taken.rows == [("a", 5)]
    assert taken.transactions.open_since == 1
    taken.add(3, 6, "c")
    assert taken.rows == [("a", 5)]
    taken.add(4, 7, end(), "d")
    # Each with the time of its own batch.
    assert taken.rows == [("a", 5), ("b", 5), ("c", 6), ("d", 7)]
    assert taken.transactions.last_begin == 1


def test_no_transaction_is_open_behind_its_end() -> None:
    taken = Taken()
    taken.add(0, 5, begin(), "a", end())
    assert taken.transactions.open_since is None


def test_what_is_aborted_never_counts() -> None:
    taken = Taken()
    taken.add(0, 5, begin(), "a")
    taken.add(2, 6, abort(), "b", begin(), "c", end())
    assert taken.rows == [("b", 6), ("c", 6)]
    assert (taken.transactions.open_since, taken.transactions.last_begin) == (None, 4)


@pytest.mark.parametrize(
    ("rows", "found"),
    [((begin(), begin()), "a second begin at 8"), (("a", end()), "none at 8"), (("a", abort()), "none at 8")],
    ids=["begin twice", "end without begin", "abort without begin"],
)
def test_transactions_that_cannot_be_are_refused(rows: tuple[str | MetadataRecord, ...], found: str) -> None:
    with pytest.raises(MalformedFileError, match=found):
        Taken().add(7, 5, *rows)
