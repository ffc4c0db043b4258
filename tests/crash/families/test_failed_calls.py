"""A call that fails with EIO ends every operation as *read-only*, whichever call it is, and the disk is left alone.

Not here: a sync that fails for want of room (``test_failed_syncs``), what is left on the disk then
(``tests.crash.test_operations``, and the judges of each family under model F).

Spec: design §3.4, law 6; reliability §4.3.
"""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import logdir
from logdir.errors import LogDirError, ReadOnlyDiskError, RefusedError
from tests.crash.directory import ModelDirectory
from tests.crash.enumerate import Run
from tests.crash.filesystem import failure
from tests.crash.model import Failure, ModelHost
from tests.crash.recording import Acks, record
from tests.logdir.disk.rescue import DELETED
from tests.operations.operation import Trait
from tests.operations.registry import case, cases, having
from tests.proof.sizes import SIZE, Size

BEGUN = having(Trait.RAW, Trait.PREPARED)
"""Their first calls are those of another process, and they go on where one of these fails."""
MOVES_ON = having(Trait.MOVES_ON)
"""What cannot be taken back in one place keeps them from no other."""
_LEFT = having(Trait.OUTSIDE, Trait.ALIKE, Trait.TAKEN_UP)
TAKEN = tuple(
    name for name in cases() if name not in _LEFT and (SIZE is not Size.SAMPLE or name not in having(Trait.LONG_CALLS))
)
PRODUCT = frozenset(str(path) for path in Path(logdir.__file__).parent.rglob("*.py"))
LOOKS = ("names", "types", "stat", "own_stat", "identity", "space", "read", "open")
PLACE_ASKED = "_against_beside"
"""A directory that does not answer is no place for a work root; another is taken."""
ASKED_FIRST = frozenset({"open_root", "plan_init", "true_properties", "state", "read", "read_marker", "parent_of"})
"""Functions that read before anything is decided; they raise the error of the kernel as it is."""


def _begin(name: str) -> tuple[ModelHost, Run]:
    one = case(name)
    return one.start, one.do


def _left_by(path: str) -> tuple[str, ...]:
    """Return what a call that failed may have left half made: where it was, and the directory made for it."""
    return path, path.rpartition("/")[0]


@pytest.mark.parametrize("name", TAKEN)
def test_a_sick_disk_is_called_read_only_and_nothing_new_is_written_to_it(name: str) -> None:
    start, run = _begin(name)
    for at, made in enumerate(record(start.world(), run).records):
        if DELETED in made.call.path and made.call.name != "link":
            continue  # its broker's
        host = ModelHost(start.world()).fail(Failure(at, errno.EIO))
        if name in BEGUN or (name in MOVES_ON and made.call.name == "rmdir"):
            _ends_as_ours(host, run)
            continue
        with pytest.raises(ReadOnlyDiskError):
            run(host, Acks())
        later = [one.call for one in host.records[at + 1 :] if one.call.path[:3] == made.call.path[:3]]
        if made.call.name == "rename":  # of a probe, which goes back
            assert [(one.name, one.path) for one in later] in ([], [("rename", made.call.path)]), made.call
        else:
            assert {one.name for one in later} <= {"unlink", "rmdir", "fsync-dir"}, made.call
            wanted = (*_left_by(made.call.path), _left_by(made.call.path)[1].rpartition("/")[0])
            assert {one.path for one in later} <= set(wanted), made.call


def _ends_as_ours(host: ModelHost, run: Run) -> None:
    try:
        run(host, Acks())
    except LogDirError:
        return


class Looks:
    """Counts the reads that operations make of the model disk, and fails one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.at = -1
        for name in LOOKS:
            monkeypatch.setattr(ModelDirectory, name, self._counted(getattr(ModelDirectory, name)))

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def look(directory: ModelDirectory, *arguments: Any) -> Any:
            caller = sys._getframe(1)
            if caller.f_globals["__name__"].startswith("logdir.") and caller.f_code.co_name != PLACE_ASKED:
                self.count += 1
                if self.count == self.at:
                    raise failure(errno.EIO, directory.path)
            return real(directory, *arguments)

        return look

    def failing(self, start: ModelHost, run: Run) -> Iterator[None]:
        """Run it as it is, then yield before each run in which one look fails."""
        run(ModelHost(start.world()), Acks())
        for at in range(1, self.count + 1):
            self.count, self.at = 0, at
            yield


@pytest.mark.parametrize("name", [name for name in TAKEN if name not in BEGUN])
def test_a_disk_that_cannot_be_looked_at_is_called_read_only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start, run = _begin(name)
    for _ in Looks(monkeypatch).failing(start, run):
        host = ModelHost(start.world())
        try:
            run(host, Acks())
        except ReadOnlyDiskError:
            continue
        except RefusedError:
            assert name in having(Trait.RESERVE)  # which has other places
        except OSError as error:
            frames = [frame.name for frame in traceback.extract_tb(error.__traceback__) if frame.filename in PRODUCT]
            assert frames[0] in ASKED_FIRST, frames
