"""The output of ``logdirctl staged ls --json`` on another broker, as far as an adoption needs it.

One JSON object: the envelope of every command, and in ``result`` the broker and its staged replicas. Keys that are not
needed may hold anything; needed ones are checked as strictly as in our own files.

Not here: printing it (``tools``), the decision (``decide.adopt``).

Spec: design §6; docs/json.md "staged ls"; attacks A16.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdir.errors import InvalidIdError, MalformedFileError, UnsupportedVersionError
from logdir.formats.own import own_json
from logdir.formats.own.own_json import Values
from logdir.ids import TopicId
from logdir.names import MAX_PARTITION, is_legal_topic
from logdir.replica_ref import ReplicaRef

COMMAND = "staged ls"
FORMAT = 1
MAX_BYTES = 256 << 20
"""Size of a listing of 200,000 staged replicas; a larger file is not read."""


class ListedState(Enum):
    """The state of a staged replica in a listing."""

    COUNTING = "counting"
    DUE = "due"
    HELD = "held"
    PURGING = "purging"
    INCOMING = "incoming"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedReplica:
    """One staged replica in a listing of ``logdirctl staged ls --json``."""

    log_dir: str
    name: str
    """Its name under ``deleting/`` or ``incoming/``."""
    state: ListedState
    ref: ReplicaRef
    log_end: int | None
    """The offset after its last record."""
    undo_until_ms: int | None
    """When a purge may remove it (wall clock of that broker); ``None``: no deadline."""
    is_tiered: bool
    """Whether the topic has remote storage, so that the staged files are only a part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedDocument:
    """What ``logdirctl staged ls --json`` printed on one broker."""

    path: str
    """Path of the file with the listing."""
    exit_status: int
    """0: every log dir was read, and no listed replica is broken."""
    cluster_id: str | None
    node_id: int | None
    is_broker_running: bool | None
    """``None``: not known."""
    replicas: tuple[ListedReplica, ...]


def parse(data: bytes, path: str = "") -> StagedDocument:
    """Parse the output of ``logdirctl staged ls --json``.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: the file is no such listing, or cut off.
        UnsupportedVersionError: the listing has another ``format`` number.
    """
    if len(data) > MAX_BYTES:
        raise MalformedFileError(path, expected=f"at most {MAX_BYTES} bytes", found="a larger file")
    try:
        value = own_json.parse_json(data)
    except (ValueError, RecursionError) as error:
        raise MalformedFileError(path, expected="one object of JSON", found=str(error)) from None
    top = Values(value, path)
    if top.text("command") != COMMAND:
        raise top.refused("command", COMMAND)
    if (version := top.number("format")) != FORMAT:
        raise UnsupportedVersionError(path, expected=f"format {FORMAT}", found=version)
    exit_status = top.number("exit")
    result = top.inner("result")
    # A failed command has no result; its exit status shows that.
    items = value["result"].get("items", None if exit_status == 0 else [])
    if not isinstance(items, list):
        raise result.refused("items", "a list")
    has_broker = exit_status == 0 or result.has("node_id")
    return StagedDocument(
        path=path,
        exit_status=exit_status,
        cluster_id=result.text_or_none("cluster_id") if has_broker else None,
        node_id=result.number_or_none("node_id") if has_broker else None,
        is_broker_running=_flag_or_none(result, "broker_runs") if has_broker else None,
        replicas=tuple(_replica(Values(item, path, f"items[{number}]."), path) for number, item in enumerate(items)),
    )


def _flag_or_none(values: Values, key: str) -> bool | None:
    try:
        return values.flag(key)
    except MalformedFileError:
        if values.text_or_none(key) is None:
            return None
        raise


def _replica(values: Values, path: str) -> ListedReplica:
    topic, topic_id = values.text_or_none("topic"), values.text_or_none("topic_id")
    if topic is not None and not is_legal_topic(topic):
        raise values.refused("topic", "a legal topic name")
    try:
        known = None if topic_id is None else TopicId.parse(topic_id, path)
    except InvalidIdError as error:
        raise MalformedFileError(path, expected=error.expected, found=topic_id) from None
    return ListedReplica(
        log_dir=values.text("log_dir"),
        name=values.text("path").rpartition("/")[2],
        state=values.one_of("state", ListedState),
        ref=ReplicaRef(topic=topic, topic_id=known, partition=values.number("partition", MAX_PARTITION)),
        log_end=values.number_or_none("log_end"),
        undo_until_ms=values.number_or_none("undo_until_ms"),
        is_tiered=values.has("tiered") and _flag_or_none(values, "tiered") is True,
    )
