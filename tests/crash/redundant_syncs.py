"""Syncs that no model misses, each with the reason it is kept: at most a fifth of all.

A key is ``module.function: call``, as ``seeded.patched.sync_calls`` finds it.

Spec: reliability §4.4 ("every fsync must either be killed by some model or carry a comment naming the assumption").
"""

from __future__ import annotations

REDUNDANT: dict[str, str] = {}

REDUNDANT_IN_FAMILIES: dict[str, str] = {
    "adopt.withdraw: site.incoming.sync()": (
        "ext4, XFS, btrfs: the replica that speaks against the adoption is live, durably, before this rename and until "
        "the directory is gone, so a half-emptied `.ready` that comes back is withdrawn again by the next start; kept "
        "because what is being removed must not bear, at any instant of any disk, the name of what may be published"
    ),
    "adopt.publish: directory.sync()": (
        "ext4, XFS, btrfs: a marker that comes back under a live name means nothing, brokers pass over it and every "
        "start takes it away; kept so that an inventory taken after the acknowledgement shows the replica as live alone"
    ),
}
"""Of the operations that have families of their own, by the names ``seeded.syncs.numbered`` gives."""
