"""What must be in one replica's directory, and in the files beside them all, after a kill or a recovery.

Not here: where directories may lie (``oracle``).

Spec: design §2 laws 7, 9, §3.1, §3.3, §8; attacks A9, A36, A37.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

from tests.crash.soak.broker import LAST_INDEXES, METADATA, OLD_NS, STRANGERS, meta
from tests.crash.soak.looks import CHECKPOINTS, HIDDEN_PROBE, Dir, File, Look, entries, marker
from tests.crash.soak.model import BARRING, LAYOUT, SIDES, KnownReplica, Model
from tests.logdir.disk.staged_rig import GID, UID
from tests.operations.registry import draws

FILE_OWNER = (UID, GID, 0o644)
DIRECTORY_OWNER = (UID, GID, 0o755)
OTHER = ("other", 7)
"""A partition that lies nowhere, and has entries in every checkpoint file."""
_FALSE_NODE = b"node.id=2147483647\n"
_FOR_GOOD = frozenset(
    {
        "meta.properties",
        ".lock",
        *CHECKPOINTS,
        *(f"work/{name}" for name in ("owner.lock", "reserve", "work-root.json")),
    }
)
_NEEDED = (*STRANGERS, *(f"work/{name}" for name in ("owner.lock", "reserve", "heartbeat.json", "staging-limit.json")))
_AT_TIMES = re.compile(
    rf"({'|'.join(CHECKPOINTS)})\.(tmp|old)|(start-block|layout)\.json\.tmp|work/(heartbeat|staging-limit)\.json(\.tmp)?"
)
_OF_LAYOUT = frozenset({"layout.json"})
_OF_BAR = frozenset({"start-block.json", "logdird-start-block.txt"})


def replica(model: Model, known: KnownReplica, place: str, one: Dir, *, is_recovered: bool) -> Iterator[str]:
    """Yield what is wrong with one directory.

    Args:
        model: What is known.
        known: Of its replica.
        place: Where it lies.
        one: As it was found.
        is_recovered: Whether a recovery came to its end since the last kill.
    """
    if one.unexpected_entries:
        yield f"foreign: {one.path} holds {one.unexpected_entries}"
    is_part = place in ("claimed", "begun")
    for name, data in known.files.items():
        file = one.files.get(name)
        if file is None:
            is_dropped = name in LAST_INDEXES and known.indexes != "there"
            if not is_part and not is_dropped:
                yield f"lost: {one.path} has no {name}"
        elif name == METADATA:
            if not is_part:
                yield from _metadata(model, known, place, one, file, is_recovered)
        elif place != "claimed":
            if (file.data, file.mtime_ns) != (data, known.mtimes_ns.get(name, file.mtime_ns)):
                yield f"lost: {one.path} has another {name}"
            if place in ("live", *SIDES) and file.owner[:2] != (UID, GID):
                yield f"foreign: {one.path}/{name} belongs to {file.owner}"
    if place == "live" and known.indexes == "gone" and set(LAST_INDEXES) & set(one.files):
        yield f"trap: {one.path} is live again with the indexes of its last segment"
    more = set(one.files) - set(known.files)
    if model.layout == "ids" or model.is_amid(LAYOUT):
        more -= {"relayout.json"} if one.is_by_id or not is_recovered else set()
        more -= {"partition.metadata.new.json"} if not is_recovered else set()
    if more:
        yield f"foreign: {one.path} holds {sorted(more)}"
    yield from _markers(model, known, place, one, is_recovered)


def _metadata(model: Model, known: KnownReplica, place: str, one: Dir, file: File, is_recovered: bool) -> Iterator[str]:
    plain = known.files[METADATA]
    with_topic = f"version: 0\ntopic_id: {known.id}\ntopic_name: {known.topic}".encode()
    allowed = {plain}
    if place == "live" and (model.layout == "ids" or model.is_amid(LAYOUT)):
        allowed = {with_topic} if one.is_by_id else {plain, with_topic} if not is_recovered else {plain}
    if file.data not in allowed:
        yield f"lost: {one.path} has the metadata {file.data!r}"
    if file.mtime_ns != known.mtimes_ns.get(METADATA, file.mtime_ns):
        yield f"lost: {one.path} has metadata of another time"


def _markers(model: Model, known: KnownReplica, place: str, one: Dir, is_recovered: bool) -> Iterator[str]:
    whole, new = one.markers.get("replica.json"), one.markers.get("replica.new.json")
    is_amid = not is_recovered and any(known.key in pending.keys for pending in model.pending)
    # What an unfinished capture holds waits for the next.
    if new is not None and not is_amid and place != "begun":
        yield f"stuck: {one.path} has half a marker beside its own"
    if place in ("live", "deleted") and whole is not None and not is_amid:
        yield f"stuck: {one.path} is {place} with a marker"
    said = marker(whole)
    if place not in SIDES or whole is None or said is None:
        return
    if whole.owner != FILE_OWNER:
        yield f"foreign: the marker of {one.path} belongs to {whole.owner}"
    if said["boottime_ms"] != known.staged_ms or (place == "staged" and said["delay_ms"] != known.delay_ms):
        yield (
            f"early: {one.path} counts {said['delay_ms']} ms from {said['boottime_ms']}, "
            f"not {known.delay_ms} from {known.staged_ms}"
        )
    if not known.is_capture and known.log_start not in (None, said["checkpoints"]["log_start"]):
        yield f"lost: {one.path} forgot the start of its log, {known.log_start}"


def layouts(model: Model, found: Look, *, is_recovered: bool) -> Iterator[str]:
    """Yield what is wrong with the layout."""
    forms = {one.is_by_id for one in found.dirs if one.place == "live"}
    if is_recovered and len(forms) > 1:
        yield "stuck: a layout half changed outlives the recovery"
    if not model.is_amid(LAYOUT) and forms - {model.layout == "ids"}:
        yield f"lost: the layout is no longer that of {model.layout}"
    files = {disk for disk, path in found.files if path == "layout.json"}
    wanted = set(range(model.disks)) if forms == {True} else set()
    if is_recovered and forms and files != wanted:
        yield f"stuck: layout.json lies on the disks {files}"


def bars(model: Model, found: Look, *, is_recovered: bool) -> Iterator[str]:
    """Yield what is wrong with the start block: every ``meta.properties`` is true, or blocked beside what is true."""
    blocked = set()
    for disk in range(model.disks):
        true, file = meta(disk), found.files.get((disk, "meta.properties"))
        if file is None:
            yield f"lost: meta.properties of disk {disk}"
            continue
        kept = found.files.get((disk, "start-block.json"))
        if file.data == true.replace(b"node.id=1\n", _FALSE_NODE):
            blocked.add(disk)
            if kept is None or base64.b64decode(json.loads(kept.data)["meta_properties"]) != true:
                yield f"lost: disk {disk} is blocked, and what is true is not kept"
        elif file.data != true:
            yield f"lost: disk {disk} has another meta.properties"
        elif file.mtime_ns != OLD_NS:
            yield f"lost: disk {disk} has a meta.properties of another time"
        if file.owner[:2] != (UID, GID):
            yield f"foreign: meta.properties of disk {disk} belongs to {file.owner}"
        if is_recovered and disk not in blocked and any((disk, name) in found.files for name in _OF_BAR):
            yield f"stuck: disk {disk} is not blocked, and something of a start block lies there"
    every = set(range(model.disks))
    if is_recovered and blocked not in (set(), every):
        yield f"stuck: half a start block outlives the recovery, on the disks {blocked}"
    if not model.is_amid(BARRING) and blocked != (every if model.start_block == "blocked" else set()):
        yield f"lost: acknowledged is {model.start_block}, blocked are the disks {blocked}"
    if any(one.is_by_id for one in found.dirs if one.place == "live") and blocked != every:
        yield f"lost: replicas lie under ids, and blocked are only the disks {blocked}"


def rest(model: Model, found: Look, *, is_recovered: bool) -> Iterator[str]:
    """Yield what is wrong with everything that is no partition directory."""
    known = [draw for draw in draws().values() if draw.leaves]
    leaves = frozenset(path for draw in known for path in draw.leaves)
    for draw in known:
        yield from (draw.holds(found, model.ended.get(draw.kind), model.begun.get(draw.kind, ())) if draw.holds else ())
    for (disk, path), file in found.files.items():
        where = f"{path} of disk {disk}"
        if path in STRANGERS:
            if (file.data, file.mtime_ns) != (STRANGERS[path], OLD_NS):
                yield f"foreign: {where} was changed"
        elif path in _OF_LAYOUT | _OF_BAR:
            if not model.is_amid(BARRING) and model.start_block == "open":
                yield f"stuck: {where} lies there"
        elif path not in _FOR_GOOD | leaves and not _AT_TIMES.fullmatch(path):
            yield f"foreign: {where} lies there"
        if (
            path in {"work/heartbeat.json", "work/staging-limit.json", *CHECKPOINTS, *leaves}
            and file.owner != FILE_OWNER
        ):
            yield f"foreign: {where} belongs to {file.owner}"
    for disk in range(model.disks):
        yield from (f"lost: {path} of disk {disk}" for path in _NEEDED if (disk, path) not in found.files)
        yield from _small(model, found, disk)
    prefixes = {(one.disk, one.path.split("/")[-2]) for one in found.dirs if one.place == "live" and one.is_by_id}
    usual = {"__strangers", "work/deleting", "work/incoming", "work/probe", "work/spare-inodes"}
    for (disk, path), owner in found.directories.items():
        # A process may be killed while it proves that it can rename, and while it makes or empties a prefix.
        is_loose = path in (HIDDEN_PROBE, "work/deleting/probe", "work/incoming/probe")
        is_loose |= len(path) == 2 and model.is_amid(LAYOUT)
        if path not in usual and (disk, path) not in prefixes and (is_recovered or not is_loose):
            yield f"foreign: {path} of disk {disk} lies there"
        if (disk, path) in prefixes and is_recovered and owner != DIRECTORY_OWNER:
            yield f"foreign: {path} of disk {disk} belongs to {owner}"


def heartbeat_and_staging_limit(found: Look, disk: int) -> tuple[int, int] | None:
    """Return the last boot time a heartbeat saw and the first count of staging; ``None`` if a file is torn."""
    beat, count = (marker(found.files.get((disk, f"work/{name}.json"))) for name in ("heartbeat", "staging-limit"))
    if beat is None or count is None:
        return None
    return beat["boots"][-1]["seen_ms"], count["staged"][0][1] if count["staged"] else 0


def _small(model: Model, found: Look, disk: int) -> Iterator[str]:
    said = heartbeat_and_staging_limit(found, disk)
    if said is None:
        yield f"lost: the heartbeat or the staging limit of disk {disk} is torn"
        return
    filing = [pending.about for pending in model.pending if pending.kind == "file"]
    acked = (model.heartbeat_ms.get(disk, 1), model.staging_limit.get(disk, 0))
    for what, key, value, known in zip(
        ("heartbeat", "staging-limit"), ("seen_ms", "partitions"), said, acked, strict=True
    ):
        may = {known, *(about[key] for about in filing if about["what"] == what)}
        if value not in may:
            yield f"lost: the {what} of disk {disk} says {value}, not one of {may}"


def checkpoints(model: Model, found: Look) -> Iterator[str]:
    """Yield what is wrong with the entries of the checkpoint files."""
    filing = [p.about for p in model.pending if p.kind == "file" and p.about["what"] == "entries"]
    loose = {key for pending in model.pending for key in pending.keys}
    for disk in range(model.disks):
        read: dict[str, dict[tuple[str, int], int]] = {}
        for number, name in enumerate(CHECKPOINTS):
            file = found.files.get((disk, name))
            lines = {} if file is None else entries(file.data)
            if lines is None:
                yield f"lost: {name} of disk {disk} is torn"
                return
            read[name] = lines
            may = {model.offsets.get(disk, {}).get(name)}
            may |= {list(about["offsets"].values())[number] for about in filing if about["disk"] == disk}
            if lines.get(OTHER) not in may:
                yield f"lost: {name} of disk {disk} says {lines.get(OTHER)} of another's partition, not one of {may}"
        for key, known in model.known.items():
            if known.disk == disk and "live" in known.places and key not in loose and known.log_start is not None:
                start = read[CHECKPOINTS[1]].get((known.topic, known.partition))
                if start != known.log_start:
                    yield f"lost: {key} lives with {start} as the start of its log, not {known.log_start}"
