"""Check that the log dirs of a command all belong to the named broker.

Spec: design §3.2; attacks A25.
"""

from __future__ import annotations

from logdir.errors import ANOTHERS_DISK, ForeignLogDirError
from logdir.formats.own import work_root_file
from logdir.paths import META_PROPERTIES
from logdir.service.log_dirs.config import BrokerConfig


def require_one_broker(
    named: BrokerConfig, first: work_root_file.Belonging | None, found: work_root_file.Belonging, log_dir: str
) -> None:
    """Check that a log dir belongs to the named broker, and to the cluster and node of the first log dir.

    Raises:
        ForeignLogDirError: it belongs to another broker.
    """
    wanted = found.node_id if named.node_id is None else named.node_id
    if found.node_id != wanted or (first is not None and found[:2] != first[:2]):
        expected = f"node {wanted}" if first is None else str(first)
        raise ForeignLogDirError(f"{log_dir}/{META_PROPERTIES}", expected=expected, found=str(found), fix=ANOTHERS_DISK)
