"""The judgement of a soak: what was found is what is known, or what an operation that was interrupted may leave.

It is worked out without the code it judges. Each line begins with what it is:

- *lost*: a replica, one of its files, or a byte or time of one, is not where it must be; an acknowledged step is not.
- *early*: a purge was begun before its time, or a deadline is another than was set.
- *doubled*: a replica lies where it need not be, or two directories live under one id.
- *stuck*: a marker is torn or another's; something of an interruption outlives the recovery; an operation is refused.
- *trap*: live again without having been cleanly closed, with the indexes of its last segment.
- *foreign*: something nobody asked for lies there, was changed, or belongs to somebody else.

Not here: what is known (``model``), what a directory must hold (``contents``), killing (``rounds``).

Spec: reliability §4.4 (oracle), §7 row 4; design §2 laws 1, 3, 5, 7, 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.crash.soak import contents
from tests.crash.soak.broker import LAST_INDEXES, meta
from tests.crash.soak.looks import CHECKPOINTS, Dir, Look, entries, marker
from tests.crash.soak.model import BARRING, SIDES, Alternative, Key, Model

_TAKEN_ON = frozenset({"adopt", *BARRING})
"""What a recovery finishes or undoes; of everything else a kill has decided."""


def judge(model: Model, found: Look, *, is_recovered: bool) -> list[str]:
    """Return what is wrong, one line each; if nothing is, what was found is known from then on.

    Args:
        model: What is known.
        found: At an instant at which no process of ours works.
        is_recovered: Whether a recovery came to its end since the last kill.
    """
    wrong = list(_judge(model, found, is_recovered))
    if not wrong:
        _settle(model, found, is_recovered)
    return wrong


def _judge(model: Model, found: Look, is_recovered: bool) -> Iterator[str]:
    dirs: dict[Key, dict[str, Dir]] = {key: {} for key in model.known}
    for one in found.dirs:
        key = _key_of(model, one)
        if key is None:
            yield f"foreign: {one.path} is no replica we know"
            continue
        place, wrong = _place(one)
        if wrong:
            yield wrong
        if place in dirs[key]:
            yield f"doubled: {key} is {dirs[key][place].path} and {one.path}"
        dirs[key][place] = one
    yield from _places(model, dirs, is_recovered)
    for key, there in dirs.items():
        for place, one in there.items():
            yield from contents.replica(model, model.known[key], place, one, is_recovered=is_recovered)
    yield from _twice(found)
    yield from contents.layouts(model, found, is_recovered=is_recovered)
    yield from contents.bars(model, found, is_recovered=is_recovered)
    yield from contents.rest(model, found, is_recovered=is_recovered)
    yield from contents.checkpoints(model, found)


def _key_of(model: Model, one: Dir) -> Key | None:
    """Return whose a directory is: by its first log, or by its name where that is gone or not yet there."""
    if one.token is not None and one.id is not None:
        return (one.token, one.id) if (one.token, one.id) in model.known else None
    named = one.name.removesuffix(".purging") if one.place in ("aside", "claimed") else None
    at = SIDES if one.place == "aside" else {one.place}
    for key, known in model.known.items():
        # Twins lie on two disks under one name, and nothing moves between disks.
        is_its = (known.id, known.disk) == (one.id, one.disk) and named in (None, known.name)
        if is_its and at & model.places_of(key):
            return key
    return None


def _place(one: Dir) -> tuple[str, str]:
    """Return the place of a directory, and what is wrong with its marker."""
    if one.place != "aside":
        return one.place, ""
    said = marker(one.markers.get("replica.json"))
    if said is None:
        return "staged", f"stuck: {one.path} is staged without a whole marker"
    if (said["birth_inode"], said["topic_id"], said["partition"]) != (one.inode, one.id, one.partition):
        return "staged", f"stuck: {one.path} is staged under the marker of another"
    return ("held" if said["delay_ms"] is None else "staged"), ""


def _places(model: Model, dirs: Mapping[Key, Mapping[str, Dir]], is_recovered: bool) -> Iterator[str]:
    loose: set[Key] = set()
    for pending in model.pending:
        loose |= pending.keys
        may = [one for one in pending.alternatives if one.is_end or not is_recovered]
        if may and not any(all(frozenset(dirs[k]) == places for k, places in one.places.items()) for one in may):
            seen = {key: sorted(dirs[key]) for key in pending.keys}
            yield f"lost: amid {pending.kind}, {seen} is none of {[_shown(one) for one in may]}"
    for key, there in dirs.items():
        if key not in loose and frozenset(there) != model.known[key].places:
            word = "doubled" if set(there) > model.known[key].places else "lost"
            yield f"{word}: {key} is {sorted(there)}, not {sorted(model.known[key].places)}"


def _shown(one: Alternative) -> str:
    return str({key: sorted(places) for key, places in one.places.items()})


def _twice(found: Look) -> Iterator[str]:
    by_id: dict[tuple[str | None, int], str] = {}
    by_name: dict[tuple[str, int], str] = {}
    for one in found.dirs:
        if one.place == "live":
            if by_id.setdefault((one.id, one.partition), one.path) != one.path:
                yield f"doubled: {by_id[one.id, one.partition]} and {one.path} are live"
            if one.topic is not None and by_name.setdefault((one.topic, one.partition), one.path) != one.path:
                yield f"doubled: {by_name[one.topic, one.partition]} and {one.path} are live"


# From then on.


def _settle(model: Model, found: Look, is_recovered: bool) -> None:
    where: dict[Key, dict[str, Dir]] = {key: {} for key in model.known}
    for one in found.dirs:
        key = _key_of(model, one)
        if key is not None:
            where[key][_place(one)[0]] = one
    for key, there in where.items():
        _settle_one(model, key, there)
    if model.is_amid(("file",)):
        _settle_files(model, found)
    if not is_recovered:
        for pending in model.pending:
            if pending.kind not in _TAKEN_ON and pending.keys:
                pending.alternatives = (Alternative({key: model.known[key].places for key in pending.keys}),)
            if pending.kind == "capture":
                (key,) = pending.keys
                begun = where[key].get("begun")
                if begun is not None and not begun.files:
                    # Nothing was linked yet, with its marker or without: it goes.
                    pending.alternatives += (Alternative({key: model.known[key].places - {"begun"}}),)
        return
    if model.is_amid(BARRING):
        forms = {one.is_by_id for one in found.dirs if one.place == "live"}
        model.layout = "ids" if forms == {True} else "names"
        model.start_block = "open" if found.files[0, "meta.properties"].data == meta(0) else "blocked"
    model.pending.clear()
    for key in [key for key, known in model.known.items() if not known.places]:
        del model.known[key]


def _settle_one(model: Model, key: Key, there: Mapping[str, Dir]) -> None:
    known = model.known[key]
    known.places = frozenset(there)
    # Of one that lies nowhere there any more no name is remembered: another may have it by now.
    known.name = next((there[at].name.removesuffix(".purging") for at in ("claimed", *SIDES) if at in there), "")
    if "held" in there:
        known.delay_ms = None
    for place in SIDES:
        said = marker(there[place].markers.get("replica.json")) if place in there else None
        if said is not None and known.is_capture:
            known.log_start = said["checkpoints"]["log_start"]
    if "live" in there and known.indexes == "any" and not set(LAST_INDEXES) & set(there["live"].files):
        known.indexes = "gone"


def _settle_files(model: Model, found: Look) -> None:
    for disk in range(model.disks):
        said = contents.heartbeat_and_staging_limit(found, disk)
        if said is not None:
            model.heartbeat_ms[disk], model.staging_limit[disk] = said
        for name in CHECKPOINTS:
            file = found.files.get((disk, name))
            offset = (entries(file.data) or {}).get(contents.OTHER) if file is not None else None
            if offset is not None:
                model.offsets.setdefault(disk, {})[name] = offset
