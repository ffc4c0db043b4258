"""Print every batch and record of metadata files as Kafka's own decoder does. Reads only.

Not here: the lines (``logdir.metadata.dump``), which log is meant (``metadata``).

Spec: design §6; KIP-631, "kafka-dump-log.sh"; docs/json.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from logdir.cluster.metadata_file import opened
from logdir.errors import ConfigError, LogDirError, Problem
from logdir.metadata.dump import RELEASES, Dump, form_of
from logdir.service.metadata import NO_LOG, MetadataRequest, directory_of, files_of, reading

_SUFFIXES = (".log", ".checkpoint")
_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataDumpRequest:
    """What is dumped: files, or the newest snapshot and the log of a broker."""

    files: tuple[str, ...] = ()
    place: MetadataRequest | None = None
    """``None``: the files alone."""
    release: str = RELEASES[-1]
    """Whose lines are printed."""
    is_record_metadata_skipped: bool = False
    """What records say, without their offsets and sizes."""

    def require_valid(self) -> None:
        """Return if it names files or a broker, and a release whose lines are known. Raises ``ConfigError``."""
        if bool(self.files) == (self.place is not None):
            found = "both" if self.files else "neither"
            raise ConfigError((Problem("config-error", "metadata dump", "files, or a broker", found),))
        if self.place is not None:
            self.place.require_valid()
        if form_of(self.release) is None:
            expected = f"a release from {RELEASES[0]} to {RELEASES[-1]}"
            raise ConfigError((Problem("config-error", "--stock", expected, self.release),))
        wrong = [name for name in self.files if not name.endswith(_SUFFIXES) or "\0" in name]
        if wrong:
            expected = "a file called .log or .checkpoint"
            raise ConfigError(tuple(Problem("config-error", name, expected, "another name") for name in wrong))


class FileDump:
    """One file that is dumped; what is wrong with it is known once its lines or batches are taken."""

    def __init__(self, name: str, request: MetadataDumpRequest) -> None:
        """Begin.

        Args:
            name: As it was typed, or found.
            request: What is dumped.
        """
        self.name = name
        self.path = os.path.abspath(name)
        self._request = request
        self.error: LogDirError | None = None
        """What ended it."""
        self.problems: list[Problem] = []
        self.gaps: tuple[tuple[int, int], ...] = ()
        """Offsets that follow each other without being neighbours; the first hundred."""
        self.trailing_bytes: int | None = None
        """Behind the last whole batch; ``None``: it was not read to its end."""

    def lines(self) -> Iterator[str]:
        """Yield what stock prints after ``Dumping FILE``, without line ends."""
        skipped = self._request.is_record_metadata_skipped
        return self._all(lambda dump: dump.lines(skip_record_metadata=skipped))

    def batches(self) -> Iterator[dict[str, Any]]:
        """Yield one object per batch, under the names that stock prints."""
        return self._all(lambda dump: dump.objects())

    def _all(self, parts: Callable[[Dump], Iterator[_Part]]) -> Iterator[_Part]:
        form = form_of(self._request.release)
        assert form is not None, "the request is valid"
        try:
            # An error of the kernel is one of the file's.
            with reading(self.path), opened(self.path, is_followed=bool(self._request.files)) as file:
                dump = Dump(file, form=form)
                yield from parts(dump)
        except LogDirError as error:
            self.error, self.problems = error, [error.problem()]
            return
        self.gaps, self.trailing_bytes, self.problems = tuple(dump.gaps), dump.trailing_bytes, _counted(dump)


def files_to_dump(request: MetadataDumpRequest) -> tuple[FileDump, ...]:
    """Return every file that is meant, in the order of the dump: those named, or snapshot and segments, oldest first.

    Raises:
        ConfigError: the request is not valid.
        LogDirError: the broker's metadata log is not there.
    """
    request.require_valid()
    if request.place is None:
        return tuple(FileDump(name, request) for name in request.files)
    directory = directory_of(request.place)
    with reading(directory, NO_LOG):
        return tuple(FileDump(path, request) for path in files_of(directory))


def _counted(dump: Dump) -> list[Problem]:
    more = dump.unreadable - len(dump.problems)
    if not more:
        return dump.problems
    last = dump.problems[-1]
    return [*dump.problems[:-1], last._replace(fix=f"{last.fix}{'; ' if last.fix else ''}{more} more in this file")]
