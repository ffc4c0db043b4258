"""A broker's plan document: the steps of its layout change, as JSON lines with a digest.

Header, one line per step, footer with the number of steps and the digest of all lines before it. A truncated,
altered or newer document is not used at all. Unknown keys are ignored.

Not here: writing one (``migrate.plan.documents``), whether a step still fits (``decide.layout.transitions``).

Spec: design §7.1 (digest), §7.7 (``brokers/``).
"""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Any, NamedTuple

from logdir.errors import FormatError, MalformedFileError, UnsupportedVersionError
from logdir.formats.own.own_json import Values, parse_json
from logdir.ids import TopicId
from logdir.names import MAX_PARTITION, DirForm, parse_partition_dir, render_id_dir
from logdir.paths import METADATA_TOPIC

VERSION = 1
VERB = "layout"
_OPERATION = "relayout"


class IdFrom(Enum):
    """The origin of a step's topic id."""

    OWN = "own"
    """The replica's own ``partition.metadata``."""
    SIBLINGS = "siblings"
    """Other replicas of the same topic."""
    MINTED = "minted"
    """No replica had an id: the planner minted one."""


class Header(NamedTuple):
    """Line 1 of a plan document: the broker, and the inventory that the plan was made from."""

    cluster: str
    """The cluster's name in the fleet file."""
    cluster_id: str | None
    """Its cluster id."""
    node_id: int
    """The broker's node id."""
    inventory_sha256: str
    """The digest of the inventories of the broker."""
    log_dirs: tuple[str, ...]
    """Absolute paths of the broker's log dirs."""


class Step(NamedTuple):
    """One replica that moves from the topic-name layout to the topic-id layout."""

    step: int
    """Its number, from 1."""
    log_dir: str
    """The log dir that the replica lies in."""
    name: str
    """Its path, relative to the log dir: ``from`` in the document."""
    place: str
    """Its new path, relative to the log dir: ``to`` in the document."""
    topic: str
    """The name of its topic."""
    topic_id: TopicId
    """The id that it gets, or has."""
    partition: int
    """Its number in the topic."""
    id_from: IdFrom
    """Where the id is from."""
    log_bytes: int | None
    """Size when the inventory was taken, for people; a broker that ran since has changed it."""


class PlanDocument(NamedTuple):
    """The content of a plan document."""

    header: Header
    """Its first line."""
    steps: tuple[Step, ...]
    """Its steps, in their order."""
    sha256: str
    """SHA-256 in its footer, which names this document in ``layout.json``."""


def parse(data: bytes, path: str = "") -> PlanDocument:
    """Parse a plan document.

    Args:
        data: The whole file.
        path: Path of the file, for the error, which adds the line.

    Raises:
        MalformedFileError: truncated, altered, or an invalid line; the path is ``path:LINE``.
        UnsupportedVersionError: a version other than 1.
    """
    lines = data.split(b"\n")
    count = len(lines) - 1
    if lines[-1] or count < 2:
        raise MalformedFileError(
            f"{path}:{max(1, len(lines) - (not lines[-1]))}",
            expected="a header, steps and a footer, each a line that ends with LF",
            found="a line that is cut off" if lines[-1] else f"{count} lines",
            fix="copy brokers/CLUSTER/NODE.jsonl from the plan directory again",
        )
    header = _header(_object(lines[0], f"{path}:1"), f"{path}:1")
    footer_at = f"{path}:{count}"
    footer = Values(_object(lines[count - 1], footer_at), footer_at)
    stored, number = footer.text("sha256"), footer.number("steps")
    digest = hashlib.sha256(data[: len(data) - len(lines[count - 1]) - 1]).hexdigest()
    if stored != digest or number != count - 2:
        raise MalformedFileError(
            footer_at,
            expected=f"{count - 2} steps, sha256 {digest}",
            found=f"{number} steps, sha256 {stored}",
            fix="this file was altered or cut off; copy brokers/CLUSTER/NODE.jsonl from the plan directory again",
        )
    steps = []
    names: set[tuple[str, str]] = set()
    partitions: set[tuple[TopicId, int]] = set()
    for at, line in enumerate(lines[1 : count - 1], 2):
        step = _step(Values(_object(line, f"{path}:{at}"), f"{path}:{at}"), f"{path}:{at}", header)
        if step.step != at - 1:
            raise MalformedFileError(f"{path}:{at}", expected=f"step {at - 1}", found=step.step)
        if (step.log_dir, step.name) in names or (step.topic_id, step.partition) in partitions:
            raise MalformedFileError(f"{path}:{at}", expected="a replica that no other step names", found=step.name)
        names.add((step.log_dir, step.name))
        partitions.add((step.topic_id, step.partition))
        steps.append(step)
    return PlanDocument(header, tuple(steps), digest)


def _object(line: bytes, path: str) -> dict[str, Any]:
    try:
        values = parse_json(line)
    except (ValueError, RecursionError) as error:
        raise MalformedFileError(path, expected="one object of JSON", found=str(error)) from None
    if not isinstance(values, dict):
        raise MalformedFileError(path, expected="one object of JSON", found=values)
    return values


def _log_dirs(values: dict[str, Any], path: str) -> tuple[str, ...]:
    found = values.get("log_dirs")
    if not isinstance(found, list) or not all(isinstance(each, str) and each.startswith("/") for each in found):
        raise MalformedFileError(path, expected="a list of absolute paths in log_dirs", found=found)
    if len(set(found)) != len(found):
        raise MalformedFileError(path, expected="each log dir once in log_dirs", found=found)
    return tuple(found)


def _header(found: dict[str, Any], path: str) -> Header:
    values = Values(found, path)
    version = values.number("plan")
    if version != VERSION:
        raise UnsupportedVersionError(
            path, expected=f"plan version {VERSION}", found=version, fix="use the logdird release that wrote it"
        )
    if values.text("verb") != VERB:
        raise MalformedFileError(path, expected=f"verb {VERB}", found=values.text("verb"))
    log_dirs = _log_dirs(found, path)
    return Header(
        values.text("cluster"),
        values.text_or_none("cluster_id"),
        values.number("node_id"),
        values.text("inventory_sha256"),
        log_dirs,
    )


def _step(values: Values, path: str, header: Header) -> Step:
    if values.text("op") != _OPERATION:
        raise MalformedFileError(path, expected=f"op {_OPERATION}", found=values.text("op"))
    try:
        topic_id = TopicId.parse(values.text("topic_id"))
    except FormatError as error:
        raise MalformedFileError(path, expected=error.expected, found=error.found) from None
    step = Step(
        values.number("step"),
        values.text("log_dir"),
        values.text("from"),
        values.text("to"),
        values.text("topic"),
        topic_id,
        values.number("partition", MAX_PARTITION),
        values.one_of("id_from", IdFrom),
        values.number_or_none("log_bytes"),
    )
    if step.log_dir not in header.log_dirs:
        raise MalformedFileError(path, expected="a log_dir that the header lists", found=step.log_dir)
    name = parse_partition_dir(step.name)
    is_name = name is not None and (name.topic, name.partition, name.form) == (
        step.topic,
        step.partition,
        DirForm.CURRENT,
    )
    if not is_name or step.topic == METADATA_TOPIC:
        raise MalformedFileError(
            path, expected="'from' to be the directory of topic and partition", found=f"'{step.name}' of '{step.topic}'"
        )
    if topic_id.is_zero or step.place != render_id_dir(topic_id, step.partition):
        raise MalformedFileError(
            path, expected="'to' to be the directory of topic_id and partition", found=f"'{step.place}' of {topic_id}"
        )
    return step
