"""What must lie on the log dirs: every replica with the places it may be in, kept by the soak's own reckoning.

Nothing here is taken from the product: a command says beforehand what it may do to which replica, the disk says what it
did, and :func:`judge` says where the two part.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.disk import CHECKPOINTS, CLEAN, MARKER, META, NO_NODE, File, Partition, Seen

FIELDS = ("recovery_point", "log_start", "high_watermark", "cleaner")
"""Of a marker's ``checkpoints``, in the order of ``CHECKPOINTS``."""
STRANGER = "notes.txt"


@dataclass(slots=True, kw_only=True)
class Replica:
    """One partition directory, known by its inode."""

    topic: str
    topic_id: str
    partition: int
    disk: int
    inode: int
    mode: int
    uid: int
    gid: int
    files: dict[str, File]
    place: str = "live"
    may_lack: frozenset[str] = frozenset()
    """Indexes of its last segment, once it was taken back without having been closed cleanly."""
    entries: dict[str, int] = field(default_factory=dict)
    """Of the checkpoint files, when it was staged."""
    was_clean: bool = False
    delay_ms: int | None = None
    """``None``: held."""
    staged_ms: int = 0
    """No earlier than that."""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def id_name(self) -> str:
        return f"{self.topic_id}_{self.partition}"

    @property
    def last_indexes(self) -> frozenset[str]:
        last = max(name for name in self.files if name.endswith(".log"))[:-4]
        return frozenset(name for name in self.files if name.startswith(last) and name.endswith("index"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A command, and what it may do."""

    kind: str
    argv: tuple[str, ...]
    selected: frozenset[int] = frozenset()
    """Inodes of the replicas it may do something to."""
    delays: frozenset[int | None] = frozenset()
    """Of what it stages."""
    is_early: bool = False
    """It may remove what it names before its time, held or not."""
    changes: bool = True
    """It has ``--apply``."""


@dataclass(slots=True, kw_only=True)
class Model:
    """The truth so far."""

    log_dirs: list[Path]
    uid: int
    gid: int
    cluster_id: str
    replicas: dict[int, Replica] = field(default_factory=dict)
    """By inode; what is gone for good is not in it."""
    checkpoints: list[dict[str, dict[tuple[str, int], int]]] = field(default_factory=list)
    tops: list[dict[str, tuple[int, int, int, bytes]]] = field(default_factory=list)
    is_rooted: bool | None = False
    """Whether there are work roots; ``None``: some, after a kill."""
    in_layout: bool = False
    sequence: int = 0

    def at(self, *places: str) -> list[Replica]:
        """Return the replicas in these places, in a fixed order."""
        found = [replica for replica in self.replicas.values() if replica.place in places]
        return sorted(found, key=lambda replica: replica.inode)


def _places(model: Model, replica: Replica, action: Action, now_ms: int) -> frozenset[str]:
    """Return where a replica may be after an action."""
    here = frozenset((replica.place,))
    if replica.place == "purging":
        return here | {"gone"}
    if model.in_layout and replica.place in ("live", "by-id"):
        return frozenset(("live", "by-id"))
    if replica.inode not in action.selected:
        return here
    if action.kind in ("stage", "reconcile") and replica.place == "live":
        return here | {"staged"}
    if action.kind in ("restore", "uninstall") and replica.place == "staged":
        return here | {"live"}
    if action.kind == "purge" and replica.place == "staged":
        is_due = replica.delay_ms is not None and replica.staged_ms + replica.delay_ms <= now_ms
        return here | {"purging", "gone"} if is_due or action.is_early else here
    return here


def judge(model: Model, seen: Seen, action: Action, *, is_done: bool, window: tuple[int, int]) -> list[str]:
    """Compare the disk with the model, and take into the model what was seen.

    Args:
        model: Changed.
        seen: The disk after the action.
        action: What was run.
        is_done: It ended by itself with status 0; else it may have stopped anywhere.
        window: Wall clock in milliseconds, before it began and after it ended.

    Returns:
        One line per violation.
    """
    wrong = [*(f"twice: {path}" for path in seen.twice), *(f"odd: {path}" for path in seen.odd)]
    wrong += [f"torn: {line}" for line in seen.broken]
    # An export changes no log dir, and a broker may run beside an init: neither finishes what another left.
    is_settled = is_done and action.changes and action.kind not in ("export", "init")
    restored: dict[int, Replica] = {}
    for inode, replica in sorted(model.replicas.items()):
        places = _places(model, replica, action, window[1])
        found = seen.partitions.get(inode)
        place = "gone" if found is None else found.place
        if place not in places:
            wrong.append(f"{replica.name}: {place}, expected {' or '.join(sorted(places))}")
            continue
        was, replica.place = replica.place, place
        if found is None:
            del model.replicas[inode]
            continue
        if was == "staged" and place == "live":
            restored[inode] = replica
        if place == "staged" and was != "staged":
            _note_staging(model, replica, seen)
            replica.staged_ms = window[0]
        wrong += _judge_replica(model, replica, found, action, was=was, is_settled=is_settled, window=window)
    strange = sorted(set(seen.partitions) - set(model.replicas))
    wrong += [f"unknown: {seen.partitions[inode].path}" for inode in strange if inode not in model.replicas]
    if is_settled:
        wrong += [f"left behind: {path}" for path in seen.probes]
    wrong += _judge_checkpoints(model, seen, action, restored)
    wrong += _judge_tops(model, seen, is_settled=is_settled)
    wrong += _judge_end(model, seen, action, is_done=is_done)
    model.checkpoints, model.tops = seen.checkpoints, seen.tops
    return wrong


def _note_staging(model: Model, replica: Replica, seen: Seen) -> None:
    key = replica.topic, replica.partition
    known = model.checkpoints[replica.disk]
    replica.entries = {name: known[name][key] for name in CHECKPOINTS if key in known[name]}
    replica.was_clean = CLEAN in model.tops[replica.disk]
    found = seen.partitions[replica.inode].marker or {}
    replica.delay_ms = found.get("delay_ms")


def _judge_replica(
    model: Model,
    replica: Replica,
    found: Partition,
    action: Action,
    *,
    was: str,
    is_settled: bool,
    window: tuple[int, int],
) -> list[str]:
    wrong = []
    where = f"{replica.name} ({found.place}, {found.path})"
    if found.disk != replica.disk:
        wrong.append(f"{where}: on disk {found.disk}, expected {replica.disk}")
    if (found.mode, found.uid, found.gid) != (replica.mode, replica.uid, replica.gid):
        wrong.append(f"{where}: owner and mode {found.uid}:{found.gid} {found.mode:o}")
    expected = {"live": replica.name, "by-id": f"{replica.topic_id[:2]}/{replica.id_name}"}.get(found.place)
    if expected is not None and found.path != expected:
        wrong.append(f"{where}: expected {expected}")
    if found.place in ("staged", "purging") and not found.path.startswith(f"deleting/{replica.id_name}"):
        wrong.append(f"{where}: expected deleting/{replica.id_name}")
    if was == "staged" and found.place == "live" and not replica.was_clean:
        replica.may_lack = replica.last_indexes
    if found.place == "staged" and action.kind in ("restore", "uninstall") and replica.inode in action.selected:
        # Stopped after that and before the rename. What was taken back once and staged again before a broker ran lacks
        # them from before, however cleanly that log dir is closed by now.
        replica.may_lack |= frozenset() if replica.was_clean else replica.last_indexes
    if found.place != "purging":
        wrong += [f"{where}: {line}" for line in _judge_files(replica, found, is_in_layout=model.in_layout)]
    ours = sorted(name for name in found.files if name.startswith(MARKER) and name not in replica.files)
    if is_settled and ours != ([MARKER] if found.place == "staged" else []) and found.place != "purging":
        wrong.append(f"{where}: left behind {ours}")
    if found.place == "staged":
        wrong += [f"{where}: {line}" for line in _judge_marker(model, replica, found, action, was=was, window=window)]
    return wrong


def _judge_files(replica: Replica, found: Partition, *, is_in_layout: bool) -> list[str]:
    wrong = []
    for name, file in replica.files.items():
        now = found.files.get(name)
        if now is None:
            if name not in replica.may_lack:
                wrong.append(f"{name} is missing")
        elif now != file and not (name == "partition.metadata" and is_in_layout):
            was = {key: (old, new) for key, old, new in zip(File._fields, file, now, strict=True) if old != new}
            # A metadata file that went to the id layout and back is another file of the same bytes and time.
            if not (name == "partition.metadata" and set(was) == {"inode"}):
                wrong.append(f"{name} changed: {was}")
            else:
                replica.files[name] = now
    ours = (MARKER, "partition.metadata")
    wrong += [f"{name} is new" for name in sorted(set(found.files) - set(replica.files)) if not name.startswith(ours)]
    return wrong


def _judge_marker(
    model: Model, replica: Replica, found: Partition, action: Action, *, was: str, window: tuple[int, int]
) -> list[str]:
    marker = found.marker
    if not marker:
        return ["no marker that can be read"]
    wrong = []
    truth = {
        "topic": replica.topic, "topic_id": replica.topic_id, "partition": replica.partition, "path": replica.name,
        "birth_inode": replica.inode, "cluster_id": model.cluster_id, "node_id": 1, "clean": replica.was_clean,
        "checkpoints": {key: replica.entries.get(name) for key, name in zip(FIELDS, CHECKPOINTS, strict=True)},
    }  # fmt: skip
    wrong += [
        f"marker: {key} {marker.get(key)!r}, expected {value!r}"
        for key, value in truth.items()
        if marker.get(key) != value
    ]
    delay = marker.get("delay_ms")
    if was != "staged":
        if delay not in action.delays:
            wrong.append(f"marker: delay {delay}, expected one of {sorted(map(str, action.delays))}")
        if not window[0] - 1 <= int(marker.get("staged_at_ms", 0)) <= window[1] + 1:
            wrong.append(f"marker: staged_at_ms {marker.get('staged_at_ms')} is not within {window}")
    elif delay != replica.delay_ms:
        is_hold = action.kind == "hold" and replica.inode in action.selected and delay is None
        if not is_hold:
            wrong.append(f"marker: delay {delay}, was {replica.delay_ms}")
        replica.delay_ms = delay
    return wrong


def _judge_checkpoints(model: Model, seen: Seen, action: Action, restored: dict[int, Replica]) -> list[str]:
    wrong = []
    # What a restore may have put back, also if it was stopped before the rename.
    put: dict[tuple[int, str, tuple[str, int]], int | None] = {}
    for replica in [*model.replicas.values()]:
        if replica.inode in action.selected and action.kind in ("restore", "uninstall"):
            for name in CHECKPOINTS:
                put[replica.disk, name, (replica.topic, replica.partition)] = replica.entries.get(name)
    for disk, (before, after) in enumerate(zip(model.checkpoints, seen.checkpoints, strict=True)):
        for name in CHECKPOINTS:
            for key in sorted(set(before[name]) | set(after[name])):
                allowed = {before[name].get(key), put.get((disk, name, key), before[name].get(key))}
                if after[name].get(key) not in allowed:
                    wrong.append(f"disk {disk}: {name}: {key} {after[name].get(key)}, expected {allowed}")
    for replica in restored.values():
        for name in CHECKPOINTS:
            now = seen.checkpoints[replica.disk][name].get((replica.topic, replica.partition))
            offset = replica.entries.get(name)
            if now != offset:
                wrong.append(f"{replica.name}: taken back with {now} in {name}, expected {offset}")
    return wrong


def _judge_tops(model: Model, seen: Seen, *, is_settled: bool) -> list[str]:
    wrong = []
    for disk, (before, after) in enumerate(zip(model.tops, seen.tops, strict=True)):
        for name, (mode, uid, gid, data) in sorted(before.items()):
            if name not in (*CHECKPOINTS, META, CLEAN, STRANGER):
                continue
            if name not in after:
                wrong.append(f"disk {disk}: {name} is missing")
                continue
            if after[name][:3] != (mode, uid, gid):
                wrong.append(f"disk {disk}: {name}: owner and mode {after[name][:3]}, expected {(mode, uid, gid)}")
            if name == META:
                now = after[name][3]
                is_blocked = model.in_layout and f"node.id={NO_NODE}".encode() in now
                if now != data and not (is_blocked or model.in_layout):
                    wrong.append(f"disk {disk}: {name} changed: {now!r}")
            elif name not in CHECKPOINTS and after[name][3] != data:
                wrong.append(f"disk {disk}: {name} changed")
        known = {*CHECKPOINTS, META, CLEAN, STRANGER}
        if is_settled and not model.in_layout:
            # A checkpoint's ``.tmp`` is Kafka's name, too: whoever writes the file next takes it away.
            kept = {f"{name}{tail}" for name in (*CHECKPOINTS, META) for tail in (".old", ".tmp")}
            wrong += [f"disk {disk}: left behind {name}" for name in sorted(set(after) - known - kept)]
    return wrong


def _judge_end(model: Model, seen: Seen, action: Action, *, is_done: bool) -> list[str]:
    """Judge what a command that says it is done must have done."""
    if action.kind in ("init", "uninstall") and action.changes:
        wanted = action.kind == "init"
        model.is_rooted = wanted if is_done else None
    if not is_done or not action.changes:
        return []
    if action.kind == "init" and not all(seen.work_roots):
        return [f"init is done, and there are work roots: {seen.work_roots}"]
    if action.kind == "uninstall" and any(seen.work_roots):
        return [f"uninstall is done, and there are work roots: {seen.work_roots}"]
    wanted_places = {
        "stage": ("staged",), "restore": ("live",), "uninstall": ("live",), "layout-apply": ("by-id",),
        "layout-rollback": ("live",),
    }.get(action.kind)  # fmt: skip
    wrong = []
    for inode in sorted(action.selected):
        replica = model.replicas.get(inode)
        if action.kind == "purge" and action.is_early and replica is not None:
            wrong.append(f"{replica.name}: {replica.place}, and the purge that names it is done")
        elif action.kind == "hold" and replica is not None and replica.delay_ms is not None:
            wrong.append(f"{replica.name}: has a deadline, and the hold that names it is done")
        elif wanted_places is not None and replica is not None and replica.place not in wanted_places:
            wrong.append(f"{replica.name}: {replica.place}, and the {action.kind} that names it is done")
    return wrong
