"""The bar: a node id no broker has, in every log dir of a broker or in none.

Order: the true bytes into ``bar.json`` and a text for people, durable in every log dir; only then the first
``meta.properties`` changes. Lifting it is the exact reverse: the same bytes, with the same time of change, back in
every log dir; only then the first ``bar.json`` goes. So a log dir that is barred always holds what is true, and
wherever either is cut off, both can be done again. Half a bar is loud: a broker whose log dirs disagree stops too.

Not here: when a broker must be kept out (``decide.relayout``), what a barred file looks like (``formats.bar_file``).

Spec: design §8; attacks A37; reliability §4.2 "new file".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from typing import NamedTuple

from logdir.disk.calls import Directory
from logdir.disk.failure import calling, syncing, with_reserve
from logdir.disk.site import LogDirTop, Site
from logdir.disk.small_file import TEMPORARY, read_file, remove_file, replace_file
from logdir.errors import DiskError, LogDirError, NotFormattedError, ReadOnlyDiskError, RefusedError, StateError
from logdir.formats import bar_file, meta_properties
from logdir.formats.bar_file import FILE_NAME, BarFile
from logdir.observe.classify import META_PROPERTIES
from logdir.refusal_slug import Why

TEXT_NAME = "logdird-bar.txt"
_NEW = FILE_NAME + TEMPORARY
"""Where a ``meta.properties`` is written before it gets its name: ``meta.properties.tmp`` may be Kafka's."""


_TEXT = """\
This log dir is barred by logdird.

No broker can start on it: its node.id was changed to {false} on purpose, in this and every other log dir
of the broker. The true one is {true}; the true meta.properties is kept in bar.json. Edit neither of them.

The layout of its directories is, or was being, changed to one that brokers do not read. Ask

    logdirctl layout status

and take it back with `logdirctl layout rollback`, which lifts the bar.
"""


class BarState(Enum):
    """What the log dirs of a broker say together."""

    BARRED = "barred"
    HALF = "half"
    """Setting or lifting it was cut off: either can be done again."""
    OPEN = "open"


class _Found(NamedTuple):
    """One log dir as it is."""

    data: bytes
    """``meta.properties``."""
    is_barred: bool
    file: BarFile | None
    """``None`` if there is no ``bar.json``, or a part of one over a ``meta.properties`` that is true."""
    has_file: bool


def true_properties(top: Directory) -> bytes | None:
    """Return the ``meta.properties`` of a log dir as it is without a bar; ``None`` if there is none.

    Raises:
        FormatError: it, or the ``bar.json`` it needs, is malformed.
        StateError: it is barred, and what is true is lost.
        OSError: it cannot be read.
    """
    if read_file(top, META_PROPERTIES) is None and read_file(top, FILE_NAME) is None:
        return None
    found = _look(top)
    return found.data if found.file is None or not found.is_barred else found.file.original


def state(tops: Iterable[LogDirTop]) -> BarState:
    """Return what the log dirs of a broker say together.

    Args:
        tops: All of them; each is only read.

    Raises:
        FormatError: a ``meta.properties``, or the ``bar.json`` of a barred log dir, is malformed.
        NotFormattedError: a log dir has no ``meta.properties``.
        StateError: a log dir is barred, and what is true is lost or was changed.
        OSError: a file cannot be read.
    """
    found = [_look(one.top) for one in tops]
    if found and all(each.is_barred for each in found):
        return BarState.BARRED
    return BarState.HALF if any(each.is_barred or each.has_file for each in found) else BarState.OPEN


def bar(sites: Sequence[Site]) -> None:
    """Keep every broker out; durable when it returns. Every lock of the broker is held. Repeatable.

    Args:
        sites: All log dirs of the broker.

    Raises:
        ReadOnlyDiskError: a disk takes no changes. The other log dirs are as they were before.
        LogDirError: as ``state``, or it cannot be done; then it is done in none.
    """
    found = _look_all(sites)
    changes = [_change(site, each) for site, each in zip(sites, found, strict=True)]
    touched: list[Site] = []
    try:
        for site, each, change in zip(sites, found, changes, strict=True):
            with _told(site):
                if change is None:
                    # Whoever barred it may have been killed before it was durable; its text may not have stayed.
                    if each.file is not None:
                        _explain(site, each.file)
                    with syncing(site.top):
                        site.top.sync()
                else:
                    touched.append(site)
                    _keep(site, change)
        for site, change in zip(sites, changes, strict=True):
            if change is not None:
                with _told(site):
                    _put(site, change.changed, None, before=change.file.original)
    except LogDirError as error:
        # None rather than some. A disk that is sick is left alone: there nothing is written any more.
        for site in touched:
            if not (isinstance(error, ReadOnlyDiskError) and error.path == site.top.path):
                with suppress(LogDirError):
                    _lift([site])
        raise


def unbar(sites: Sequence[Site]) -> None:
    """Take the bar away, with the bytes and the time of change as they were; durable when it returns. Repeatable.

    Every lock of the broker is held.

    Args:
        sites: All log dirs of the broker.

    Raises:
        ReadOnlyDiskError: a disk takes no changes. Half a bar may be left, which keeps brokers out too.
        LogDirError: as ``state``, before anything was changed; or a call failed, as above.
    """
    _lift(sites)


class _Change(NamedTuple):
    changed: bytes
    file: BarFile
    has_file: bytes | None
    """The bytes of a ``bar.json`` that is there already."""


def _change(site: Site, found: _Found) -> _Change | None:
    if found.is_barred:
        return None
    path = f"{site.log_dir}/{META_PROPERTIES}"
    with _told(site):
        mtime_ns = site.top.stat(META_PROPERTIES).mtime_ns
        has_file = read_file(site.top, FILE_NAME) if found.has_file else None
    if mtime_ns < 0:
        raise RefusedError(
            path, why=Why.FILE_TIME_INVALID, expected="a time of change since 1970", found=mtime_ns, fix="touch it"
        )
    node_id = meta_properties.parse(found.data, path).node_id
    return _Change(bar_file.barred(found.data, path), BarFile(found.data, mtime_ns, node_id), has_file)


def _look(top: Directory) -> _Found:
    path = f"{top.path}/{META_PROPERTIES}"
    data, kept = read_file(top, META_PROPERTIES), read_file(top, FILE_NAME)
    if kept is not None and not (data or b"").strip():
        # A new one would have another directory id, and what is true would go with bar.json.
        raise StateError(
            path,
            expected=f"the meta.properties that was barred, since {FILE_NAME} is there",
            found="no such file" if data is None else "an empty file",
            fix=f"do not format it: {FILE_NAME} holds the true one, in base64 as meta_properties; "
            f"put that into {META_PROPERTIES}",
        )
    if data is None:
        raise NotFormattedError(
            path, expected="meta.properties", found="no such file", fix="is the right disk mounted?"
        )
    is_barred = bar_file.is_barred(data, path)
    if not is_barred:
        # Whatever it says, what is true stands in meta.properties itself.
        return _Found(data, False, None, kept is not None)
    if kept is None:
        raise StateError(
            path,
            expected=f"{FILE_NAME} beside a barred meta.properties",
            found="no such file",
            fix="restore the meta.properties of before the bar from its backup, in every log dir",
        )
    file = bar_file.parse(kept, f"{top.path}/{FILE_NAME}")
    if bar_file.barred(file.original, path) != data:
        raise StateError(
            path,
            expected=f"what {FILE_NAME} says, but for the node id",
            found="a file that was changed since it was barred",
            fix=f"restore the meta.properties of before the bar from its backup, then move {FILE_NAME} away",
        )
    return _Found(data, True, file, True)


@contextmanager
def _told(site: Site) -> Iterator[None]:
    """Say what an error of the kernel means here."""
    try:
        with calling(site.top):
            yield
    except OSError as error:
        raise DiskError(
            site.log_dir,
            expected="a bar in every log dir, or in none",
            found=error.strerror or error,
            fix="make room or rights, then do it again",
        ) from error


def _keep(site: Site, change: _Change) -> None:
    owner = site.owner.for_file()
    data = bar_file.render(change.file)
    replace_file(site.top, FILE_NAME, data, before=change.has_file, owner=owner, work=site.work, keep=False)
    _explain(site, change.file)
    with syncing(site.top):
        site.top.sync()


def _explain(site: Site, file: BarFile) -> None:
    """Write the text for people, unless it is there; whoever called syncs its directory."""
    text = _TEXT.format(false=bar_file.FALSE_NODE_ID, true=file.node_id).encode("ascii")

    def write() -> None:
        try:
            site.top.write(TEXT_NAME, text, site.owner.for_file())
        except OSError:
            _remove(site.top, TEXT_NAME)
            raise

    if read_file(site.top, TEXT_NAME) != text:
        _remove(site.top, TEXT_NAME)
        with_reserve(site.work, write)
    with syncing(site.top):
        site.top.sync_file(TEXT_NAME)


def _put(site: Site, data: bytes, mtime_ns: int | None, *, before: bytes) -> None:
    """Give ``meta.properties`` other bytes: written beside it, read back and compared, then renamed over it."""
    top, path = site.top, f"{site.log_dir}/{META_PROPERTIES}"
    if read_file(top, META_PROPERTIES) != before:
        raise RefusedError(
            path, why=Why.CHANGED, expected="the bytes just read", found="bytes that changed", fix="try again"
        )
    owner = top.stat(META_PROPERTIES).owner
    _remove(top, _NEW)

    def write() -> None:
        try:
            top.write(_NEW, data, owner, mtime_ns)
        except OSError:
            _remove(top, _NEW)
            raise

    with_reserve(site.work, write)
    with syncing(top):
        top.sync_file(_NEW)
    if read_file(top, _NEW) != data:
        raise RefusedError(
            f"{site.log_dir}/{_NEW}",
            why=Why.READ_BACK_DIFFERS,
            expected="the bytes just written",
            found="bytes that differ",
        )
    top.replace(_NEW, META_PROPERTIES)
    with syncing(top):
        top.sync()


def _look_all(sites: Sequence[Site]) -> list[_Found]:
    found = []
    for site in sites:
        with _told(site):
            found.append(_look(site.top))
    return found


def _lift(sites: Sequence[Site]) -> None:
    found = _look_all(sites)
    for site, each in zip(sites, found, strict=True):
        if each.is_barred and each.file is not None:
            with _told(site):
                _put(site, each.file.original, each.file.mtime_ns, before=each.data)
    for site in sites:
        with _told(site):
            _remove(site.top, TEXT_NAME)
            _remove(site.top, _NEW)
            # What a process that was killed had put back must be durable before bar.json goes, too.
            with syncing(site.top):
                site.top.sync()
            remove_file(site.top, FILE_NAME)


def _remove(top: Directory, name: str) -> None:
    try:
        top.stat(name)
    except FileNotFoundError:
        return
    top.unlink(name)
