"""Every sync of the operations that have families of their own, and the cases that must miss it.

Not here: those of staging, purging, recovery and small files (``test_seeded``).

Spec: reliability §4.4, §7 row 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.crash.families import CASES
from tests.crash.seeded.patched import ROOT, LeftOut, sync_calls

SMALL_FILE = "logdir/disk/kernel/small_file.py"
_CALLS_THEMSELVES = frozenset({"host", "calls"})
_BARS = ("bar that is said to be set", "bar", "bar, and lifted", "lifting")
_BARS_TAKEN_UP = tuple(name for name in CASES if name.startswith("bar, taken up"))
_LIFTINGS_TAKEN_UP = tuple(name for name in CASES if name.startswith("lifting, taken up"))
_TAKEN_UP = tuple(
    name for name in CASES if name.startswith(("layout, taken up", "way back, taken up", "finalize, taken"))
)
_TO_IDS = ("batch to ids of a kept one", "batch to ids of a kept one, then back where it is cut off", "batch to ids")
_TO_NAMES = (
    "batch to names",
    "batch to names of a kept one",
    "batch to names, and its prefixes",
    "way back over two disks",
)
_CAPTURES = ("capture", "capture, then removed by its broker", "capture of a part")
_ADOPTIONS = ("adopt", "adopt from another disk", "adopt and keep")
_STARTS = tuple(name for name in CASES if name.startswith("start that finishes"))
_INITS = ("init beside", "init inside", "init beside, by root")

TRIED: dict[str, tuple[str, ...]] = {
    "adopt._build": _ADOPTIONS,
    "adopt._make_ready": _ADOPTIONS,
    "adopt.withdraw": ("start that withdraws an adoption",),
    "adopt.publish": (*_ADOPTIONS, *_STARTS),
    "adopt_recovery._finish": _STARTS,
    "start_block.bar": _BARS_TAKEN_UP,
    "start_block._keep": (*_BARS, *_BARS_TAKEN_UP),
    "start_block._explain": _BARS,
    "start_block._put": _BARS,
    "start_block._lift": (*_BARS, *_LIFTINGS_TAKEN_UP),
    "capture._capture": ("capture of a part", "capture after a killed one, then removed by its broker"),
    "capture._sync_files": _CAPTURES,
    "capture._commit": _CAPTURES,
    "capture._give_up": ("capture of the last of it",),
    "atomic_directory.write": ("export",),
    "atomic_directory.copy": ("export",),
    "atomic_directory.new_directory": ("export",),
    "give_id._give": ("give an id", "give ids on two disks"),
    "give_id._put": ("give an id", "give ids on two disks"),
    "layout.sync": _TAKEN_UP,
    "layout.write_state": _TAKEN_UP,
    "hardlink_dir.make_marked": (*_CAPTURES, *_ADOPTIONS),
    "hardlink_dir.drop": ("start that withdraws an adoption", "capture of nothing", "adopt"),
    "relayout.sync": _TO_IDS,
    "relayout.to_ids": (*_TO_IDS, "layout over two disks"),
    "relayout._to_names": _TO_NAMES,
    "relayout.remove_empty_prefixes": ("batch to names, and its prefixes",),
    "reserve.put_inodes": ("init with spare inodes",),
    "init._begin": ("init where a directory is missing",),
    "init._make_root": _INITS,
    "init._ensure_directory": ("init over a directory of another",),
    "init._undo": ("init where beside does not do",),
    "init._finish": ("init with spare inodes",),
    "init._give": ("init over a reserve of another",),
    "removal._remove": ("uninstall inside", "uninstall beside", "uninstall with spare inodes"),
    "removal._remove_synced": ("uninstall beside", "uninstall in-place"),
}
"""By module and function: of which cases one at least must miss each of its syncs."""

RECORDS: dict[str, tuple[str, ...]] = {
    "staging limit": ("staging limit, then stage", "staging limit begun"),
    "controller": ("controller, then stage", "controller begun"),
    "heartbeat": ("heartbeat, then stage", "heartbeat begun"),
    "layout.json": (*_TAKEN_UP, "layout over two disks", "finalize"),
    "start_block.json": (*_BARS, *_LIFTINGS_TAKEN_UP),
    "work-root.json": _INITS,
}
"""What is written by ``small_file`` alone: without a sync of that one, each must miss it by itself."""


def module(call: LeftOut) -> str:
    """Return the module of a sync."""
    return Path(call.file).stem


def numbered(calls: Iterable[LeftOut]) -> Iterator[tuple[str, LeftOut]]:
    """Yield each sync with its name, which has a number where a function has two that are alike."""
    seen: Counter[str] = Counter()
    for call in sorted(calls, key=lambda one: (one.file, one.line)):
        seen[call.key] += 1
        yield call.key + (f" #{seen[call.key]}" if seen[call.key] > 1 else ""), call


def every_module() -> list[str]:
    """Return the modules that change disks and sync: all of the ring, but the calls themselves."""
    top = ROOT / "logdir/disk"
    paths = [
        str(p.relative_to(top).with_suffix("")) for p in sorted(top.rglob("*.py")) if p.stem not in _CALLS_THEMSELVES
    ]
    return [path for path in paths if any(sync_calls(f"logdir/disk/{path}.py"))]


def calls_of(names: Iterable[str]) -> list[tuple[str, LeftOut]]:
    """Return every sync of modules, with its name."""
    return list(numbered(call for name in names for call in sync_calls(f"logdir/disk/{name}.py")))


def tried(call: LeftOut) -> tuple[str, ...]:
    """Return the cases that must miss a sync."""
    return TRIED[f"{module(call)}.{call.function}"]
