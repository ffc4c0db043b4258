"""``work-root.json``: the owner of a work root. It is written last, so its presence shows that the work root is whole.

Its version is that of the whole work root. A release that does not know it refuses the work root by name, so that it
does not misread the other files there. Version 1 is that of 0.2.0. In version 2 ``heartbeat.json`` may say from when on
a boot counts (``from_ms``), which 0.2.0 would drop: it would purge too early.

Unknown keys are ignored. Not here: the place of the file and who may work there (``disk.root.work_root``), the change
from version 1 to 2 (``disk.root.upgrade``).

Spec: design §3.2; attacks A24, A25, A26; style §5.5.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from logdir.formats.kafka.meta_properties import MetaProperties
from logdir.formats.own import own_json
from logdir.ids import ClusterId, DirectoryId

KIND = "work_root"
VERSION = 2
READ = (1, VERSION)
"""The versions that this release reads; it writes ``VERSION`` alone."""


class WorkRootKind(Enum):
    """The place of a work root, relative to its log dir."""

    INSIDE = "inside"
    """The log dir itself, with ``deleting/`` at its top as in KIP-516; no stock broker starts on it."""
    BESIDE = "beside"
    """The directory ``{log.dir}.logdird``, beside the log dir."""
    IN_PLACE = "in-place"
    """``__cluster_metadata-2147483647``, the one sub-directory of a log dir that stock brokers ignore."""

    @property
    def words(self) -> str:
        """The place in a message."""
        return "in place" if self is WorkRootKind.IN_PLACE else f"{self.value} the log dir"


class Belonging(NamedTuple):
    """The cluster, node and log dir that something belongs to, as in ``meta.properties``."""

    cluster_id: ClusterId | None
    node_id: int | None
    directory_id: DirectoryId | None
    """``None``: ``meta.properties`` has none, as before 3.7."""

    def __str__(self) -> str:
        """Return all three, for a message."""
        return f"cluster {self.cluster_id}, node {self.node_id}, directory {self.directory_id}"

    def accepts(self, now: Belonging) -> bool:
        """Whether ``now`` is the same owner: a directory id may be added (3.7 does so), but never change."""
        if (self.cluster_id, self.node_id) != (now.cluster_id, now.node_id):
            return False
        return self.directory_id is None or self.directory_id == now.directory_id


def belonging(properties: MetaProperties) -> Belonging:
    """Return the owner in a ``meta.properties``."""
    return Belonging(properties.cluster_id, properties.node_id, properties.directory_id)


class WorkRootFile(NamedTuple):
    """The content of ``work-root.json``."""

    kind: WorkRootKind
    belongs: Belonging
    log_dir: str
    """Absolute path of the log dir when the work root was made, for people; its disk may be mounted elsewhere now."""
    made_at_ms: int
    unsupported_fs: bool = False
    """Whether the operator allowed an unsupported file system (``init --even-on-unsupported-fs``)."""
    version: int = VERSION
    """Of the file that was read."""


def parse(data: bytes, path: str = "") -> WorkRootFile:
    """Parse the bytes of ``work-root.json``.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        UnsupportedVersionError: the file has another version.
        MalformedFileError: cut off, altered, or a key is missing or has a wrong value.
        InvalidIdError: ``directory_id`` is no id.
    """
    version, values = own_json.parse_versions(data, path, KIND, READ)
    cluster_id = values.text_or_none("cluster_id")
    directory_id = values.text_or_none("directory_id")
    belongs = Belonging(
        None if cluster_id is None else ClusterId(cluster_id),
        values.number_or_none("node_id"),
        None if directory_id is None else DirectoryId.parse(directory_id, path),
    )
    kind = values.one_of("kind", WorkRootKind)
    unsupported_fs = values.has("unsupported_fs") and values.flag("unsupported_fs")
    return WorkRootFile(kind, belongs, values.text("log_dir"), values.number("made_at_ms"), unsupported_fs, version)


def render(value: WorkRootFile) -> bytes:
    """Return the bytes of ``work-root.json``, always in the newest version.

    Raises:
        ValueError: the path or cluster id is not UTF-8.
    """
    belongs = value.belongs
    return own_json.render(
        KIND,
        VERSION,
        {
            "kind": value.kind.value,
            "cluster_id": belongs.cluster_id,
            "node_id": belongs.node_id,
            "directory_id": None if belongs.directory_id is None else str(belongs.directory_id),
            "log_dir": value.log_dir,
            "made_at_ms": value.made_at_ms,
            **({"unsupported_fs": True} if value.unsupported_fs else {}),
        },
    )
