"""Transactions of a metadata log: rows that count together once their transaction ends, or not at all.

Not here: what a row does (the fold), transactions of producers, which no metadata log holds.

Spec: KIP-866, "Metadata Transactions"; kafka-formats §8.4; org.apache.kafka.image.loader.MetadataBatchLoader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NoReturn

from logdir.wire.metadata_fast import Row
from logdir.wire.metadata_records import MetadataRecord
from logdir.wire.metadata_tables import RecordType

_END: Final = RecordType.END_TRANSACTION.value
_BEGIN: Final = RecordType.BEGIN_TRANSACTION.value
_TRANSACTIONS: Final = frozenset((_BEGIN, _END, RecordType.ABORT_TRANSACTION.value))


class Transactions:
    """Passes rows on to a fold as soon as they count: at once, or when the transaction that they are in ends."""

    def __init__(self, apply: Callable[[Row, int], None], refuse: Callable[[str, str, int], NoReturn]) -> None:
        """Begin outside a transaction.

        Args:
            apply: Takes in a row and the time of its batch, in milliseconds.
            refuse: Raises ``MalformedFileError``; called with what was expected, what was found, and at which offset.
        """
        self.open_since: int | None = None
        """Offset of the record that began a transaction which has not ended; ``None``: none is open."""
        self.last_begin = 0
        """Offset of the record that began the last transaction; 0: there was none."""
        self._apply = apply
        self._refuse = refuse
        self._held: list[tuple[Row, int]] = []

    def add(self, rows: Iterable[tuple[int, Row]], timestamp_ms: int) -> None:
        """Take in the rows of a record batch.

        Args:
            rows: Offset and row, by ascending offset.
            timestamp_ms: Newest timestamp of the batch.

        Raises:
            MalformedFileError: a transaction begins in another one, or ends without a begin, or ``apply`` raises it.
        """
        apply, is_open = self._apply, self.open_since is not None
        for offset, row in rows:
            # Compared by identity: this is the hot path.
            if type(row) is MetadataRecord and row.type in _TRANSACTIONS:
                self._change(row.type, offset)
                is_open = self.open_since is not None
            elif is_open:
                self._held.append((row, timestamp_ms))
            else:
                apply(row, timestamp_ms)

    def _change(self, kind: int, offset: int) -> None:
        if kind == _BEGIN:
            if self.open_since is not None:
                self._refuse("one transaction at a time", "a second begin", offset)
            self.open_since = self.last_begin = offset
            return
        if self.open_since is None:
            self._refuse("the begin of a transaction before its end", "none", offset)
        held, self._held, self.open_since = self._held, [], None
        if kind == _END:
            for row, at_ms in held:
                self._apply(row, at_ms)
