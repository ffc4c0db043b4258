"""The guide through an adoption: what to type, in which order, to bring back staged replicas whose topic id is gone.

The topic is created again, its brokers are stopped, each of them adopts, they are started, and the offsets are
compared: the steps of docs/undo.md, *Back by adoption*. Where no replica can be adopted the guide gives the reasons,
and the command that copies the files.

Not here: what can be adopted (``adoption``), the guide as text for people (``service.report.guide_text``).

Spec: design §3.3 "Restore"; kafka-behaviour §10.5; attacks A16, A33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from logdir.decide.refusal import Refusal
from logdir.decide.staged.adoption import Gone, Outlook, name_of, outlook_of, topic_key, topic_selector_of
from logdir.formats.own.inventory import Kind
from logdir.names import DirForm, name_for
from logdir.observe.facts import LogDirFacts, StagedReplica
from logdir.text import quoted, size

_NO_ADDRESS: Final = "HOST:PORT"
"""Address of a broker in a command, if the metadata names none."""
_FILES: Final = "/var/tmp"  # noqa: S108 - a proposal to the operator, as in docs/undo.md
_KEPT: Final = ("retention.ms", "retention.bytes")
"""Settings of a topic for which -1 means that no broker removes a record because of its age or the size of the log."""
_START, _STOP = "systemctl start kafka", "systemctl stop kafka"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideStep:
    """One line of the guide: what to do, or what to expect."""

    step: int
    """The number of its step, from 1; several lines may belong to one step."""
    text: str
    """For people."""
    command: str | None
    """What to type at a shell; ``None``: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideWords:
    """Facts about this host's broker from which the commands of a guide are made."""

    broker: str
    """The options that name the broker, as they are typed."""
    choice: str = ""
    """The options that choose between several copies, each after a blank."""
    is_running: bool | None
    """Whether the broker runs; ``None``: not known."""
    is_quorum_known: bool
    """Whether the broker's own metadata log alone shows what is assigned here."""


def plan_guide(gone: Gone, words: GuideWords, facts: Sequence[LogDirFacts]) -> tuple[GuideStep, ...]:
    """Return the steps that bring back replicas whose topic id is gone, in the order in which they are done.

    For replicas of several topics there is one step for each topic: the command that prints the guide of that topic.

    Args:
        gone: The replicas.
        words: From which the commands are made.
        facts: Facts of every configured log dir.
    """
    topics = tuple(dict.fromkeys(map(topic_key, gone.items)))
    if len(topics) > 1:
        each = [tuple(item for item in gone.items if topic_key(item) == key) for key in topics]
        return tuple(_of_one_topic(number, replace(gone, items=items), words) for number, items in enumerate(each, 1))
    outlook = outlook_of(gone, facts)
    return _Guide(gone, outlook, words).lines()


def _of_one_topic(number: int, gone: Gone, words: GuideWords) -> GuideStep:
    partitions = _count(len({item.ref.partition for item in gone.items}), "partition")
    command = f"logdirctl staged restore {quoted(topic_selector_of(gone.items[0]))} {words.broker}{words.choice}"
    return GuideStep(step=number, text=f"{name_of(gone)} is gone; {partitions} staged here:", command=command)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


class _Guide:
    """Makes the guide of one topic, step by step."""

    def __init__(self, gone: Gone, outlook: Outlook, words: GuideWords) -> None:
        self._gone, self._outlook, self._words = gone, outlook, words
        self._topic = outlook.topic.topic
        self._word = quoted(self._topic)
        self._selector = quoted(topic_selector_of(gone.items[0]))
        self._brokers = sorted({node for on in outlook.topic.replicas.values() for node in on})
        self._lines: list[GuideStep] = []
        self._step = 0

    def lines(self) -> tuple[GuideStep, ...]:
        """Return all lines."""
        self._hold()
        if not self._outlook.adopted:
            self._refuse()
        else:
            self._create()
            self._stop()
            self._list()
            self._adopt()
            self._verify()
        return tuple(self._lines)

    def _begin(self, text: str, command: str | None = None) -> None:
        """Add the first line of the next step."""
        self._step += 1
        self._more(text, command)

    def _more(self, text: str, command: str | None = None) -> None:
        """Add a line to the step."""
        self._lines.append(GuideStep(step=self._step, text=text, command=command))

    def _refuse(self) -> None:
        for line in self._reasons():
            self._begin(line)
        words = f"{self._selector} -o {_FILES}/undo {self._words.broker}{self._words.choice}"
        self._begin("Copy the files into a directory outside the log dirs:", f"logdirctl staged export {words}")

    def _reasons(self) -> list[str]:
        """Return why replicas are not adopted: a line for each reason, with the partitions."""
        partitions = {(item.log_dir, item.name): item.ref.partition for item in self._gone.items}
        by_reason: dict[str, set[int]] = {}
        for one in self._outlook.refusals:
            by_reason.setdefault(one.problem.reason(), set()).add(_partition_of(one, partitions))
        return [
            f"{', '.join(f'{self._topic}-{one}' for one in sorted(found))} cannot be adopted: {reason}"
            for reason, found in by_reason.items()
        ]

    @property
    def _server(self) -> str:
        """The option with the address of this host's broker, from its registration in the metadata."""
        found = (image.brokers.get(self._gone.node_id) for image in self._gone.cluster.images)
        endpoints = next((one.endpoints for one in found if one is not None and one.endpoints), None)
        if endpoints is None:
            return f"--bootstrap-server {_NO_ADDRESS}"
        _, host, port, _ = endpoints[0]
        return f"--bootstrap-server {f'[{host}]' if ':' in host else host}:{port}"

    def _hold(self) -> None:
        """Begin with a hold where a deadline may pass before the end."""
        markers = [item.marker for item in self._gone.items if item.kind is Kind.STAGED]
        if all(marker is None or marker.delay_ms is None for marker in markers):
            return
        where = "" if len(self._brokers) <= 1 else f" on each broker of {self._topic}"
        words = f"{self._selector} {self._words.broker}{self._words.choice} --apply"
        self._begin(
            f"Hold the staged replicas{where}, so that none is purged meanwhile:", f"logdirctl staged hold {words}"
        )

    def _create(self) -> None:
        if self._words.is_running is False:
            self._begin(f"Start {self._named([self._gone.node_id])}:", _START)
        topic = self._outlook.topic
        clients = f"Stop the clients of {self._topic}"
        if self._outlook.is_there:
            settings = ",".join(f"{one}=-1" for one in _KEPT)
            words = f"--alter --entity-type topics --entity-name {self._word} --add-config {settings}"
            text = f"{clients}. It is there again (id {topic.topic_id}): what it holds is replaced. Keep old records:"
            self._begin(text, f"kafka-configs.sh {self._server} {words}")
            return
        assignment = ",".join(":".join(map(str, topic.replicas[one])) for one in sorted(topic.replicas))
        settings = " ".join(f"--config {one}=-1" for one in _KEPT)
        words = f"--create --topic {self._word} --replica-assignment {assignment} {settings}"
        number = _count(len(topic.replicas), "partition")
        is_whole = self._outlook.is_whole
        text = f"with its {number}" if is_whole else f"with at least {number}; its other brokers are not known"
        self._begin(f"{clients}, then create it again, {text}:", f"kafka-topics.sh {self._server} {words}")
        if not is_whole or len(self._brokers) > 1:
            text = "The assignment names the brokers of each partition (1:2,2:3): those that list its files, no others:"
            self._more(text, f"logdirctl staged ls {self._selector} {self._words.broker}")

    def _stop(self) -> None:
        brokers = self._brokers[::-1]
        each = "it has" if len(brokers) == 1 else "each of them has"
        self._begin(f"Once {each} made its replicas, stop {self._named(brokers)}:", _STOP)

    @staticmethod
    def _named(brokers: Sequence[int]) -> str:
        """Return node ids, in the order in which something is done to the brokers."""
        names = ", ".join(map(str, brokers))
        return f"broker {names}" if len(brokers) == 1 else f"brokers {names} in this order"

    @property
    def _quorum(self) -> str:
        return "" if self._words.is_quorum_known else "$QUORUM "

    def _list(self) -> None:
        if not self._words.is_quorum_known:
            self._begin("Set QUORUM as docs/undo.md says below Back by adoption.")
        if len(self._brokers) > 1:
            own = self._gone.node_id
            text = f"On each of them write what is staged to a file, as here on broker {own}; copy it to the others:"
            words = f"{self._selector} {self._quorum}{self._words.broker} --json"
            self._begin(text, f"logdirctl staged ls {words} > {self._listing(own)}")

    def _listing(self, node_id: int) -> str:
        return quoted(f"{_FILES}/{self._topic}.broker-{node_id}.json")

    def _adopt(self) -> None:
        topic, adopted = self._outlook.topic, self._outlook.adopted
        others = {node for item in adopted for node in topic.replicas[item.ref.partition]} - {self._gone.node_id}
        listings = "".join(f" --with {self._listing(one)}" for one in sorted(others))
        words = f"{self._selector} --as {self._word}{listings} {self._quorum}{self._words.broker}{self._words.choice}"
        text = "On each of them look at the plan, with the files of the others:" if others else "Look at the plan:"
        self._begin(text, f"logdirctl staged adopt {words}")
        self._more("Adopt:", f"logdirctl staged adopt {words} --apply")
        for item in adopted:
            live = f"{item.log_dir}/{name_for(self._topic, item.ref.partition, DirForm.CURRENT)}"
            self._more(f"{size(item.log_bytes)}: {item.place} -> {live}")
        for line in self._reasons():
            self._more(line)

    def _verify(self) -> None:
        first = "Start" if len(self._brokers) == 1 else "Once all have adopted, start"
        self._begin(f"{first} {self._named(self._brokers)}:", _START)
        ask = f"kafka-get-offsets.sh {self._server} --topic {self._word}"
        adopted = self._outlook.adopted
        ends = {item.ref.partition: self._gone.log_ends.get((item.log_dir, item.path)) for item in adopted}
        starts = {item.ref.partition: _start(item) for item in adopted}
        self._more(f"This must print the log ends {self._offsets(ends)}:", ask)
        self._more(f"This must print the log starts {self._offsets(starts)}:", f"{ask} --time -2")
        self._more(f"Then set {' and '.join(_KEPT)}, which are -1 now, as they were.")

    def _offsets(self, offsets: Mapping[int, int | None]) -> str:
        """Return offsets as ``kafka-get-offsets.sh`` prints them."""
        return " ".join(f"{self._topic}:{number}:{'?' if one is None else one}" for number, one in offsets.items())


def _partition_of(one: Refusal, partitions: Mapping[tuple[str, str], int]) -> int:
    return partitions[one.log_dir, one.path.rpartition("/")[2]]


def _start(item: StagedReplica) -> int | None:
    """Return the log start that a broker finds after the adoption; ``None``: not known.

    Where the marker has no log start none is written, and the log begins with its first segment.
    """
    recorded = None if item.marker is None else item.marker.checkpoints.log_start
    return None if item.first_offset is None else max(item.first_offset, recorded or 0)
