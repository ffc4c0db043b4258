"""Bugs sown into a copy of the source, and by which model each must be caught.

Not here: those of operations that have families of their own (``family_bugs``).

Spec: Build 6(d) of the storage layer; reliability §4.4, §4.3.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.crash.seeded.patched import Edit

_STAGING = "logdir/disk/replica/staging.py"
_PURGE = "logdir/disk/replica/purge.py"
_SMALL = "logdir/disk/kernel/small_file.py"


class Bug(NamedTuple):
    """One bug."""

    name: str
    edits: tuple[Edit, ...]
    tried: tuple[str, ...]
    """Arguments of ``tests.crash``."""
    models: frozenset[str]
    """What catches it, exactly."""


BUGS = (
    Bug(
        "the marker is not synced",
        (Edit(_STAGING, "open_dir.top.sync_disk()", "pass"),),
        ("stage 1",),
        frozenset({"J", "B", "P", "DJ", "F"}),
    ),
    Bug(
        "the new parent is not synced",
        (
            Edit(
                _STAGING,
                "                open_dir.deleting.sync()\n            for parent",
                "                pass\n            for parent",
            ),
        ),
        ("stage 1",),
        frozenset({"order"}),
    ),
    Bug(
        "the old parent is not synced",
        (
            Edit(
                _STAGING,
                "                    parent.sync()\n    return tuple",
                "                    pass\n    return tuple",
            ),
        ),
        ("stage 1",),
        frozenset({"order"}),
    ),
    Bug(
        "neither parent is synced",
        (
            Edit(
                _STAGING,
                "                open_dir.deleting.sync()\n            for parent",
                "                pass\n            for parent",
            ),
            Edit(
                _STAGING,
                "                    parent.sync()\n    return tuple",
                "                    pass\n    return tuple",
            ),
        ),
        ("stage 1",),
        frozenset({"order", "J", "B", "P", "DJ"}),
    ),
    Bug(
        "renamed before it is marked",
        (
            Edit(_STAGING, "                _mark(open_dir, item, data)\n", ""),
            Edit(
                _STAGING,
                'outcomes[item.path] = done(item.path, f"deleting/{place}")',
                """with site.deleting.open(place) as late:
                    _write_marker(site, late, FILE_NAME, replica_marker.render(item.marker))
                    late.sync_file(FILE_NAME)
                    late.sync()
                outcomes[item.path] = done(item.path, f"deleting/{place}")""",
            ),
        ),
        ("stage 1",),
        frozenset({"K", "J", "B", "P", "DJ", "F"}),
    ),
    Bug(
        "a rename that replaces",
        (
            Edit(
                _PURGE,
                "rename(open_dir, open_dir.deleting, name, open_dir.deleting, claimed)",
                "open_dir.deleting.replace(name, claimed)",
            ),
        ),
        ("claim where the name is taken",),
        frozenset({"plain"}),
    ),
    Bug(
        "a purge on a marker not read again",
        (Edit(_PURGE, "if found != marker:", "if False:"),),
        ("hold, then a claim decided before",),
        frozenset({"K", "J", "B", "P", "DJ", "F", "FK"}),
    ),
    Bug(
        "a failed sync is called again",
        (
            Edit(
                _STAGING,
                """            with syncing(site.deleting):
                site.deleting.sync()
            for parent in parents.values():
                with syncing(parent):
                    parent.sync()
""",
                """            for parent in (site.deleting, *parents.values()):
                try:
                    parent.sync()
                except OSError:
                    parent.sync()
""",
            ),
        ),
        ("stage 1",),
        frozenset({"F"}),
    ),
    Bug(
        "indexes kept under a clean marker",
        (Edit(_STAGING, "if item.drop_last_indexes:", "if False:"),),
        ("restore", "--models", "KJBPD"),
        frozenset({"K", "J", "B", "P", "DJ"}),
    ),
    Bug(
        "the owner is set after the final name",
        (
            Edit(
                _SMALL,
                "_write(directory, temporary, data, owner, work)",
                "_write(directory, temporary, data, Owner(0, 0, 0o600), work)",
            ),
            Edit(
                _SMALL,
                "        with_reserve(work, lambda: directory.replace(temporary, name))\n",
                "        with_reserve(work, lambda: directory.replace(temporary, name))\n"
                "        directory.adopt(name, owner)\n",
            ),
        ),
        ("make a file", "--models", "KJBPD"),
        frozenset({"K", "J", "B", "P", "DJ"}),
    ),
    Bug(
        "a batch half renamed and reported done",
        (
            Edit(
                _STAGING,
                "                outcomes[item.path] = _undone(open_dir, item.path, error)\n"
                "                _unmark(open_dir, item.path)\n",
                "                outcomes[item.path] = done(item.path, None)\n",
            ),
        ),
        ("stage 2", "--failures"),
        frozenset({"F", "FK"}),
    ),
    Bug(
        "a failed sync is reported as undone",
        (Edit("logdir/disk/replica/outcome.py", "if isinstance(error, ReadOnlyDiskError):", "if False:"),),
        ("hold",),
        frozenset({"F", "FK"}),
    ),
    Bug(
        "recovery rests on what is not durable",
        (Edit("logdir/disk/recover_log_dir.py", "open_dir.top.sync_disk()", "pass"),),
        ("purge after a killed claim", "--models", "JBP"),
        frozenset({"P"}),
    ),
    Bug(
        "checkpoint entries put back over those of what lives there",
        (Edit(_STAGING, "if is_there(parent, name):", "if False:"),),
        ("restore where something lives", "--models", "K"),
        frozenset({"K"}),
    ),
    Bug(
        "a marker of another log dir is taken",
        (Edit("logdir/disk/replica/replica_dir.py", "if ours != said and", "if False and"),),
        ("claim what came from another disk", "--models", "K"),
        frozenset({"plain"}),
    ),
)
