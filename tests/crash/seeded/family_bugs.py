"""Bugs sown into the operations that have families of their own, and by which model each must be caught.

There is no worker process yet whose late answer could be obeyed. What such an answer does is to go on with what was
decided on an older look at the disk; so that is sown where it would bite: in each place where an operation reads again,
under the locks, what it was decided on (``tests.crash.families.late``).

Spec: Build 6(d) of the storage layer; reliability §4.4.
"""

from __future__ import annotations

from tests.crash.seeded.bugs import Bug
from tests.crash.seeded.patched import Edit

_STAGING = "logdir/disk/replica/staging.py"
_SMALL = "logdir/disk/kernel/small_file.py"
_BAR = "logdir/disk/record/start_block.py"
_ADOPT = "logdir/disk/replica/adopt.py"
_ELSEWHERE = "logdir/disk/kernel/atomic_directory.py"
_RELAYOUT = "logdir/disk/replica/relayout.py"
_REMOVAL = "logdir/disk/root/removal.py"
_ANY = frozenset({"K", "J", "B", "P"})

NO_MODEL = Edit("logdir/disk/kernel/libc.py", "_NOREPLACE = 1\n", "_NOREPLACE = 0\n")
"""The kernel asked for a rename that replaces: the model disk has calls of its own, so real directories must tell."""

FAMILY_BUGS = (
    Bug(
        "a deadline taken from times of change",
        (
            Edit(
                "logdir/disk/replica/replica_dir.py",
                "    return replica_marker.parse(data, path)\n",
                """    from dataclasses import replace

    said = replica_marker.parse(data, path)
    changed_ms = min(directory.stat(name).mtime_ns for name in directory.names()) // 10**6
    return replace(said, boottime_ms=said.boottime_ms - said.staged_at_ms + changed_ms)
""",
            ),
        ),
        ("sweep of what is due", "--models", "KJBPD"),
        _ANY | {"DJ"},
    ),
    Bug(
        "the late answer of a hung worker obeyed: it stages",
        (Edit(_STAGING, "if inode != item.marker.birth_inode:", "if False:"),),
        ("stage decided before it was made anew", "--models", "KJBPD"),
        _ANY | {"DJ"},
    ),
    Bug(
        "the late answer of a hung worker obeyed: it restores",
        (Edit(_STAGING, "if marker != item.marker:", "if False:"),),
        ("restore decided before it was held", "--models", "KJBPD"),
        _ANY | {"DJ"},
    ),
    Bug(
        "the late answer of a hung worker obeyed: it writes a file",
        (Edit(_SMALL, "if found != before:", "if False:"),),
        ("file decided on before another wrote it", "--models", "KJBPD"),
        _ANY | {"DJ"},
    ),
    Bug(
        "final on one log dir before another is finalizing",
        (
            Edit(
                "logdir/decide/layout/relayout.py",
                "_decision((begin, [LiftStartBlock()] if end else [], end), sha256)",
                "_decision(([LiftStartBlock()] if end else [], "
                "sorted((*begin, *end), key=lambda one: one.log_dir)), sha256)",
            ),
        ),
        ("finalize", "--models", "KJBP"),
        _ANY,
    ),
    Bug(
        "final durable before another log dir is durably finalizing",
        (
            Edit(
                "logdir/service/batch/layout_phases.py",
                'and so before the first "final".\n                self._sync_all()\n',
                "and so on.\n                pass\n",
            ),
        ),
        ("finalize, taken up at call 7", "--models", "KJBP"),
        _ANY - {"K"},
    ),
    Bug(
        "the start block on some log dirs only",
        (
            Edit(
                _BAR,
                "            if change is not None:\n",
                "            if change is not None and open_dir is open_dirs[0]:\n",
            ),
        ),
        ("bar that is said to be set", "--models", "KJBP"),
        _ANY,
    ),
    Bug(
        "blocked before every log dir holds what is true",
        (
            Edit(
                _BAR,
                "                    _keep(open_dir, change)\n",
                "                    _keep(open_dir, change)\n"
                "                    _put(open_dir, change.changed, None, before=change.file.original)\n",
            ),
            Edit(_BAR, "            if change is not None:\n", "            if False and change is not None:\n"),
        ),
        ("bar that nobody takes up", "--models", "KJBP"),
        _ANY,
    ),
    Bug(
        "what is true is given up before it is in place everywhere",
        (
            Edit(
                _BAR,
                "                _put(open_dir, each.file.original, each.file.mtime_ns, before=each.data)\n",
                "                remove_file(open_dir.top, FILE_NAME)\n"
                "                _put(open_dir, each.file.original, each.file.mtime_ns, before=each.data)\n",
            ),
        ),
        ("bar, and lifted", "--models", "KJBP"),
        _ANY,
    ),
    Bug(
        "moved to ids before its metadata says the topic",
        (
            Edit(_RELAYOUT, "None if item.path in ours else _give_topic(open_dir, item)", "None"),
            Edit(
                _RELAYOUT,
                "        for item in moved:\n            batch.outcomes[item.path] = done",
                "        for item in moved:\n"
                "            with open_dir.top.open(item.prefix) as late:\n"
                "                with late.open(item.place.rpartition('/')[2]) as inner:\n"
                "                    replace_metadata(inner, with_topic(item.topic_id, item.topic))\n"
                "            batch.outcomes[item.path] = done",
            ),
        ),
        ("batch to ids of a kept one, then back where it is cut off", "--models", "KJBP"),
        _ANY,
    ),
    Bug(
        "a capture said to be done before it is in its place",
        (
            Edit(
                "logdir/disk/replica/capture.py",
                "                    place = _commit(open_dir, name, target, replica, now)\n",
                "                    place = name\n",
            ),
        ),
        ("capture", "--models", "KJBP"),
        _ANY,
    ),
    Bug(
        "links outlive the marker that says what they are",
        (
            Edit(
                "logdir/disk/replica/hardlink_dir.py",
                "        for inner in names:\n            if inner != FILE_NAME:\n                _unlink",
                "        for inner in reversed(names):\n            if True:\n                _unlink",
            ),
            Edit("logdir/disk/replica/hardlink_dir.py", "        if FILE_NAME in names:\n", "        if False:\n"),
        ),
        ("start that withdraws an adoption", "--models", "KJBP"),
        _ANY,
    ),
    Bug(
        "an adoption sets the present one aside before the other is ready",
        (
            Edit(
                _ADOPT,
                "    ready = _make_ready(open_dir, item, _build(open_dir, item))\n",
                "    begun = _build(open_dir, item)\n",
            ),
            Edit(
                _ADOPT,
                "    if staged.place is None:\n        withdraw(open_dir, ready)\n",
                "    ready = _make_ready(open_dir, item, begun)\n"
                "    if staged.place is None:\n        withdraw(open_dir, ready)\n",
            ),
        ),
        ("adopt", "--models", "KJBP"),
        _ANY,
    ),
    Bug(
        "a staging limit counted on one disk only",
        (
            Edit(
                "logdir/disk/record/staging_limit.py",
                "for open_dir in open_dirs:\n        with recording(open_dir.work, FILE_NAME):\n            before",
                "for open_dir in open_dirs[:1]:\n        with recording(open_dir.work, FILE_NAME):\n            before",
            ),
        ),
        ("staging limit, then stage", "--models", "KJBP"),
        _ANY,
    ),
    Bug(
        "a work root of which the word goes last that it is whole",
        (
            Edit(_REMOVAL, "        if WORK_ROOT_FILE in names:\n", "        if False:\n"),
            Edit(
                _REMOVAL,
                "        for name in _FILES:\n",
                "        for name in reversed(_FILES):\n",
            ),
            Edit(
                _REMOVAL,
                "            if name in names and name != WORK_ROOT_FILE:\n",
                "            if name in names:\n",
            ),
        ),
        ("uninstall beside", "--models", "KJBP"),
        _ANY,
    ),
    Bug(
        "a copy with its name before it is whole",
        (
            Edit(
                _ELSEWHERE,
                "                with _about(destination):\n                    directory.sync()\n            try:\n",
                "            try:\n",
            ),
            Edit(
                _ELSEWHERE, "                    parent.rename(partial, parent, name)\n", "                    pass\n"
            ),
            Edit(
                _ELSEWHERE,
                "                yield NewDirectory(",
                "                parent.rename(partial, parent, name)\n                yield NewDirectory(",
            ),
        ),
        ("export", "--models", "KJBP"),
        _ANY,
    ),
)

BUILD_6_D = {
    "missing fsync of the marker": "the marker is not synced",
    "missing fsync of the new parent": "the new parent is not synced",
    "missing fsync of the old parent": "the old parent is not synced",
    "rename before marker": "renamed before it is marked",
    "replacing rename": "a rename that replaces",
    "deadline from mtime": "a deadline taken from times of change",
    "purge without re-reading the marker": "a purge on a marker not read again",
    "claim without NOREPLACE": "the kernel asked for a rename that replaces",
    "retry after a failed fsync": "a failed sync is called again",
    "late answer of a hung worker obeyed": "the late answer of a hung worker obeyed: it stages",
    "bar on some dirs only": "the start block on some log dirs only",
    "indexes kept under a clean marker": "indexes kept under a clean marker",
    "batch half-renamed and reported done": "a batch half renamed and reported done",
    "ownership set after the final name": "the owner is set after the final name",
}
"""What was asked for, and the bug that is it; one is sown where no model disk can miss it (``test_others``)."""
