"""``work-root.json``: whose a work root is. The last thing written into one, so that its presence says it is whole.

Keys we do not know are passed over. Not here: where the file lies and who may work there (``disk.work_root``).

Spec: design §3.2; attacks A25, A26; style §5.5.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from logdir.formats.kafka.meta_properties import MetaProperties
from logdir.formats.own import own_json
from logdir.ids import ClusterId, DirectoryId

KIND = "work_root"
VERSION = 1


class WorkRootKind(Enum):
    """Where a work root lies, seen from its log dir."""

    INSIDE = "inside"
    """It is the log dir itself; no stock broker starts on it (KIP-516's own path)."""
    BESIDE = "beside"
    """``{log.dir}.logdird``."""
    IN_PLACE = "in-place"
    """The one sub-directory of a log dir that stock brokers pass over."""


class Belonging(NamedTuple):
    """To which cluster, node and log dir something belongs, as ``meta.properties`` says."""

    cluster_id: ClusterId | None
    node_id: int | None
    directory_id: DirectoryId | None
    """``None`` before 3.7."""

    def __str__(self) -> str:
        """Return all three, for a message."""
        return f"cluster {self.cluster_id}, node {self.node_id}, directory {self.directory_id}"

    def accepts(self, now: Belonging) -> bool:
        """Whether what ``now`` stands there is still this: a directory id may be new (3.7 gives one), never change."""
        if (self.cluster_id, self.node_id) != (now.cluster_id, now.node_id):
            return False
        return self.directory_id is None or self.directory_id == now.directory_id


def belonging(properties: MetaProperties) -> Belonging:
    """Return what a ``meta.properties`` says of this."""
    return Belonging(properties.cluster_id, properties.node_id, properties.directory_id)


class WorkRootFile(NamedTuple):
    """What the file says."""

    kind: WorkRootKind
    belongs: Belonging
    log_dir: str
    """Absolute path as configured when the root was made: for people; a disk may be mounted elsewhere."""
    made_at_ms: int
    unsupported_fs: bool = False
    """The operator's word, when it was made, that its file system may be any."""


def parse(data: bytes, path: str = "") -> WorkRootFile:
    """Read the file.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        UnsupportedVersionError: another version.
        MalformedFileError: not the file, cut off or altered.
        InvalidIdError: ``directory_id`` is no id.
    """
    values = own_json.parse(data, path, KIND, VERSION)
    cluster_id = values.text_or_none("cluster_id")
    directory_id = values.text_or_none("directory_id")
    belongs = Belonging(
        None if cluster_id is None else ClusterId(cluster_id),
        values.number_or_none("node_id"),
        None if directory_id is None else DirectoryId.parse(directory_id, path),
    )
    kind = values.one_of("kind", WorkRootKind)
    unsupported_fs = values.has("unsupported_fs") and values.flag("unsupported_fs")
    return WorkRootFile(kind, belongs, values.text("log_dir"), values.number("made_at_ms"), unsupported_fs)


def render(value: WorkRootFile) -> bytes:
    """Return the file.

    Raises:
        ValueError: the path or cluster id is no UTF-8.
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
