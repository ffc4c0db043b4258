"""The facts of a guide through an adoption, for the staged replicas of a selection whose topic id is gone.

Reads the log ends of these replicas; changes nothing.

Not here: the steps (``logdir.decide.staged.guide``).

Spec: design §3.3 "Restore"; kafka-behaviour §10.5.
"""

from __future__ import annotations

from collections.abc import Sequence

from logdir.decide.image.still_assigned import ClusterState
from logdir.decide.staged.adoption import Gone, gone_of, topic_key
from logdir.decide.staged.guide import GuideStep, GuideWords, plan_guide
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts, StagedReplica
from logdir.service.cluster.source import OWN_LOG, SourceRequest, parse_uri
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.report.staged import Selection
from logdir.service.staged_listing import log_end_of
from logdir.text import quoted


def guide_of(
    broker: OpenBroker,
    source: SourceRequest,
    selection: Selection,
    cluster: ClusterState,
    items: Sequence[StagedReplica],
    facts: Sequence[LogDirFacts],
) -> tuple[GuideStep, ...]:
    """Return the guide for the selected staged replicas; empty if no topic id is known to be gone.

    Args:
        broker: The broker, opened.
        source: The source of ``cluster``.
        selection: The operator's selection.
        cluster: The cluster state.
        items: The selected replicas, partial captures among them.
        facts: Facts of every configured log dir.
    """
    found = gone_of(cluster, items)
    nodes = {one.node_id for one in facts if one.node_id is not None}
    # Of log dirs of several nodes every command refuses the use, by name.
    if not found or len(nodes) != 1:
        return ()
    is_one = len(set(map(topic_key, found))) == 1
    if is_one and not selection.is_choice:
        # The topic is created again as a whole, so all that is staged of it is adopted.
        every = [item for one in facts for item in one.staged if topic_key(item) == topic_key(found[0])]
        found = gone_of(cluster, (item for item in every if item.kind is not Kind.INCOMING or item.is_partial))
    gone = Gone(
        items=found,
        cluster=cluster,
        node_id=nodes.pop(),
        now_ms=read_instant().wall_ms,
        # The guide of several topics only names them.
        log_ends={(item.log_dir, item.path): log_end_of(broker.ports, item) for item in found} if is_one else {},
    )
    return plan_guide(gone, _words(broker, source, selection, cluster), facts)


def _words(broker: OpenBroker, source: SourceRequest, selection: Selection, cluster: ClusterState) -> GuideWords:
    running = broker.ports.running()
    choice = "" if selection.disk is None else f" --disk {quoted(selection.disk)}"
    choice += "".join(f" --name {quoted(name)}" for name in selection.names)
    request = broker.request
    if request.daemon_config is not None:
        named = f"--config {quoted(request.daemon_config)}"
    elif request.server_properties is not None:
        named = f"--server-properties {quoted(request.server_properties)}"
    else:
        named = f"--log-dirs {quoted(','.join(broker.named.log_dirs))}"
    return GuideWords(
        broker=named,
        choice=choice,
        is_running=None if isinstance(running, Problem) else running,
        is_quorum_known=cluster.is_current and parse_uri(source.uri) == OWN_LOG and source.high_watermark is None,
    )
