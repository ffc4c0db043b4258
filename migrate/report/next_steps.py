"""Next commands and warnings in the report: every command is complete, and none is irreversible.

A command contains everything that the plan knows, so that it can be pasted: on its broker, in the plan's directory. If
the plan does not know a path, there is a sentence and no command.

Not here: the layout of the page (``sections``).

Spec: design §6 (next commands), §8 (no released Kafka reads topic-id directories).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from logdir.markup import plural, sentence
from migrate.report.model import ClusterFacts, Model
from migrate.report.plan import WaveCluster

NO_BROKER = (
    "No released Kafka (2.8 to 4.3) reads topic-id directories: a broker that was taken there does not start until "
    "layout rollback has taken it back. Try the steps on a broker that may stay stopped; do not migrate a cluster."
)
"""Warning shown wherever the page leads towards the topic-id layout."""


class Advice(NamedTuple):
    """One recommended step: a sentence and, if it is known, a command."""

    why: str
    command: str | None
    """The complete command for a shell; ``None``: the plan does not know all paths for it."""


class _Broker(NamedTuple):
    cluster: str
    node_id: int
    readiness: str
    steps: int
    log_dirs: str | None
    """All its log dirs, quoted for ``--log-dirs``; ``None`` if one is not known."""

    def named(self, several: bool) -> str:
        return f"broker {self.node_id} of {self.cluster}" if several else f"broker {self.node_id}"


def next_commands(model: Model) -> list[Advice]:
    """Return the next steps; the first one is the most urgent.

    Args:
        model: The report's model.
    """
    brokers, several = _brokers(model), len(model["clusters"]) > 1
    advice = []
    unknown = next((broker for broker in brokers if broker.readiness == "unknown"), None)
    blocked = next((broker for broker in brokers if broker.readiness == "blocked"), None)
    if unknown is not None:
        name = unknown.named(several)
        why = f"A disk of {name} was not read. Take inventories on that broker, then plan the fleet again"
        command = unknown.log_dirs and f"logdirctl inventory --log-dirs {unknown.log_dirs} -o inventories"
        advice.append(Advice(why, command))
    elif blocked is not None:
        why = (
            f"What blocks {blocked.named(several)} is listed under Conflicts. Look at the disks of that broker, mend "
            "them, take new inventories, then plan the fleet again"
        )
        command = blocked.log_dirs and f"logdirctl inventory --log-dirs {blocked.log_dirs}"
        advice.append(Advice(why, command))
    first = _first(model)
    if first is not None:
        why = f"In the plan's directory on {first.named(several)}, stopped: what its steps would do; changes nothing"
        command = first.log_dirs and f"logdirctl layout check {_document(first)} --log-dirs {first.log_dirs}"
        advice.append(Advice(why, command))
    return advice or [
        Advice("No broker has steps left; to look again, take new inventories and plan the fleet again", None)
    ]


def trial(model: Model) -> list[Advice]:
    """Return the commands that move the first broker with steps to topic ids and back; empty if none has steps.

    Args:
        model: The report's model.
    """
    first = _first(model)
    if first is None or first.log_dirs is None:
        return []
    document, log_dirs = _document(first), f"--log-dirs {first.log_dirs}"
    return [
        Advice("Make the work root of each log dir, where there is none yet", f"logdirctl init {log_dirs} --apply"),
        Advice("Rename the replicas, by this plan", f"logdirctl layout apply {document} {log_dirs} --apply"),
        Advice("Check every replica's place", f"logdirctl layout verify {document} {log_dirs} --apply"),
        Advice("Take all back, before the broker starts", f"logdirctl layout rollback {log_dirs} --apply"),
    ]


def trial_title(model: Model) -> str:
    """Return the title of ``trial``, which names the broker."""
    first = _first(model)
    return "" if first is None else f"A trial on {first.named(len(model['clusters']) > 1)}, stopped, and the way back"


def above_bound(cluster: WaveCluster, facts: ClusterFacts) -> str:
    """Return a sentence on why a cluster has more waves than its lower bound; empty if it has no more.

    Args:
        cluster: The cluster in ``waves.json``.
        facts: The sums over this cluster.
    """
    if facts["wave_count"] <= cluster["lower_bound"]:
        return ""
    rack_of = {broker["node_id"]: broker["rack"] for broker in cluster["brokers"]}
    racks = [{rack_of[node_id] for node_id in wave} for wave in cluster["waves"]]
    reasons = ["The bound looks at one partition at a time, and brokers that share different partitions add up"]
    if all(len(of) == 1 for of in racks) and len(set.union(*racks)) > 1:
        names = [next(iter(of)) for of in racks]
        each = [
            f"{_rack(rack)} {names.count(rack)} {plural(names.count(rack), 'wave')}"
            for rack in sorted(set(names), key=lambda rack: (rack is not None, rack or ""))
        ]
        if len(each) > _RACKS_SHOWN:
            each = [*each[:_RACKS_SHOWN], f"{len(each) - _RACKS_SHOWN} more racks the rest"]
        reasons.append(f"every wave keeps to one rack, so the racks add up too: {sentence(each)}")
    if cluster.get("from") == "pairs":
        reasons.append("these waves come from pairs of brokers, which is stricter than needed")
    return f"{'; '.join(reasons)}. Fewer waves may exist: the search does not try all."


_RACKS_SHOWN = 6


def _rack(rack: str | None) -> str:
    return "no rack" if rack is None else f"rack {rack}"


def _first(model: Model) -> _Broker | None:
    """Return the first broker of the first wave that has steps."""
    for broker_of in _by_cluster(model):
        for wave in broker_of.waves:
            for node_id in wave:
                broker = broker_of.clean.get(node_id)
                if broker is not None and broker.steps:
                    return broker
    return None


class _Waves(NamedTuple):
    waves: list[list[int]]
    clean: dict[int, _Broker]


def _by_cluster(model: Model) -> list[_Waves]:
    clean: dict[str, dict[int, _Broker]] = {cluster["name"]: {} for cluster in model["waves"]["clusters"]}
    for broker in _brokers(model):
        if broker.readiness == "clean":
            clean[broker.cluster][broker.node_id] = broker
    return [_Waves(cluster["waves"], clean[cluster["name"]]) for cluster in model["waves"]["clusters"]]


def _brokers(model: Model) -> list[_Broker]:
    paths: dict[int, list[str | None]] = {}
    for disk in model["disks"]:
        paths.setdefault(disk["broker"], []).append(disk["log_dir"])
    entries = [(cluster["name"], broker) for cluster in model["waves"]["clusters"] for broker in cluster["brokers"]]
    return [
        _Broker(
            name, broker["node_id"], broker["readiness"], broker["steps"], _log_dirs(paths.get(facts["broker"], []))
        )
        for (name, broker), facts in zip(entries, model["broker_facts"], strict=True)
    ]


def _log_dirs(paths: Sequence[str | None]) -> str | None:
    # A path with a comma, a character that cannot be seen or bytes that are not UTF-8 cannot be given on a command line
    # that is read from a page.
    if not paths or any(path is None or not path.isprintable() or "," in path or "\ufffd" in path for path in paths):
        return None
    return shlex.quote(",".join(sorted(path for path in paths if path is not None)))


def _document(broker: _Broker) -> str:
    return f"brokers/{broker.cluster}/{broker.node_id}.jsonl"
