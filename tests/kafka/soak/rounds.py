"""Rounds: one operation and one kill each, amid it where that can be had; then everything runs again and is judged.

The broker runs for some rounds: topics are created, deleted, captured, purged, held. Then it stops, or is killed, and
for some rounds operators stage, restore, adopt and purge by requests to the daemon. What was cut off is asked for
again, as its operator would; nothing else is done by hand.

Spec: design §3.3, §5; kafka-behaviour §10.4, §10.5.
"""

from __future__ import annotations

import random
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from logdir.decide.staged.deadline import DelayPolicy
from logdir.service.adopt import AdoptRequest
from logdir.service.cluster.source import SourceRequest
from logdir.service.purge import PurgeRequest
from logdir.service.report.staged import Selection
from logdir.service.restore import RestoreRequest
from logdir.service.stage import StageRequest
from tests.kafka.rig import Rig
from tests.kafka.soak.disk import Found, look
from tests.kafka.soak.kill import IDLE, Aim, Doing, Task, children, ends, is_watch
from tests.kafka.soak.model import DELAYS_MS, REPLACED_MS, Log, Place, now_ms
from tests.kafka.soak.world import DELETE_DELAY_MS, SWEEP_MS, SoakError, World

LIVE_ROUNDS: Final = 6
STOPPED_ROUNDS: Final = 6
"""Before the broker is stopped, and before it is started again."""
TOPICS: Final = 12
"""As many live topics there are when the broker starts, and before the last of its rounds, or more."""
_WORKER_KILLS: Final = 2
"""Of one daemon: it waits longer each time before it opens its broker again."""
_REQUEST_SECONDS: Final = 8
GONE_MEANWHILE: Final = "removed by the broker while the daemon was down too long, each named by it"
VICTIMS: Final = ("daemon", "worker", "watch", "broker")


@dataclass(slots=True)
class Report:
    """What was done."""

    killed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By what was in progress, and victim."""
    broker_starts: int = 0
    too_long: int = 0
    """How often the daemon, or a worker, was down for so long that its broker may have removed what was deleted."""

    @property
    def kills(self) -> int:
        """How many there were."""
        return sum(self.killed.values())

    @property
    def amid(self) -> int:
        """How many came amid an operation."""
        return sum(count for (what, _), count in self.killed.items() if what != IDLE)

    def inside(self, what: str) -> int:
        """Return how many came inside one step: ``capture``, ``claim-remove``, ``adopt``."""
        return sum(count for (found, _), count in self.killed.items() if found == what)

    def of(self, victim: str) -> int:
        """Return how often a victim was killed: one of ``VICTIMS``."""
        return sum(count for (_, killed), count in self.killed.items() if killed == victim)

    def counts(self) -> dict[str, int]:
        """Return the kills: all, those of each victim, those amid an operation, and those inside each."""
        victims = {f"kills of the {victim}": self.of(victim) for victim in VICTIMS}
        inside = {f"inside {what}": self.inside(what) for what in sorted({what for what, _ in self.killed} - {IDLE})}
        amid = {"kills amid an operation": self.amid, "times without a daemon that were too long": self.too_long}
        return {"kills": self.kills, **victims, **amid, **inside}

    def histogram(self) -> str:
        """Return a table: a row for each thing in progress, a column for each victim."""
        rows = sorted({what for what, _ in self.killed}, key=lambda what: (what == IDLE, what))
        lines = [f"{'in progress':34}" + "".join(f"{victim:>8}" for victim in VICTIMS) + f"{'all':>8}"]
        for what in rows:
            counts = [self.killed[what, victim] for victim in VICTIMS]
            lines.append(f"{what:34}" + "".join(f"{count:8}" for count in (*counts, sum(counts))))
        return "\n".join([*lines, f"{self.kills} kills, {self.amid} of them amid an operation"])


class _Request(NamedTuple):
    """A request to the daemon, and how to see that it was done."""

    doing: Doing
    command: str
    request: Any
    goal: Callable[[], bool]
    done: Callable[[], None]


class Soak:
    """A soak of one broker and its daemon."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self._draw = random.Random(f"daemon {seed}")
        self.world = World(rig)
        self.report = Report()
        self._aim = Aim(self.world.broker.log_dirs, self._draw)
        self._log: deque[str] = deque(maxlen=24)
        self._made = 0
        self._worker_kills = 0
        self._killed = ""
        self._down_ms = 0
        """What was killed last, and when."""
        self._again: dict[str, str] = {}
        """Topics that were created again: the id whose files they are to adopt, by name."""
        self._unsure: set[str] = set()
        """Topics whose deletion was asked for as the broker was killed."""
        self._back: list[Log] = []
        """What came back and was not read by a consumer yet."""

    def run(self, kills: int) -> None:
        """Kill so many times.

        Raises:
            SoakError: A violation, with what led there.
        """
        world = self.world
        try:
            world.start()
            while self.report.kills < kills:
                self._while_running(kills)
                self._while_stopped(kills)
            self._start_broker()
            world.settle()
            world.verify(world.model.at(Place.LIVE))
            world.end()
        except Exception as error:
            led = "\n".join([*self._log, *world.account()])
            raise SoakError(f"violation: {error}\nwhat led there:\n{led}") from error
        finally:
            world.close()

    def done(self) -> dict[str, int]:
        """Return how many replicas were captured, restored, adopted and purged."""
        model = self.world.model
        return {
            "captures": len(model.captured), "restores": model.restored, "adoptions": model.adopted,
            "purges": model.purged, GONE_MEANWHILE: model.excused,
        }  # fmt: skip

    def _note(self, text: str) -> None:
        self._log.append(f"{now_ms()} {self.report.kills}: {text}")

    # -- while the broker runs -------------------------------------------------------------------------------

    def _start_broker(self) -> None:
        world = self.world
        if not world.broker.is_running:
            world.start_broker()
            self.report.broker_starts += 1
            self._note("the broker was started")
            self._settle_deletions()
        live = world.model.at(Place.LIVE)
        world.verify([log for log in self._back if log in live] + self._draw.sample(live, min(2, len(live))))
        self._back.clear()

    def _settle_deletions(self) -> None:
        """Learn which topics live on, because the broker was killed before it deleted them."""
        there = set(self.world.rig.client.topics())
        for log in self.world.model.at(Place.DELETED):
            if log.topic in self._unsure & there:
                log.place, log.since_ms, log.delay_ms = Place.LIVE, 0, None
        self._unsure.clear()

    def _while_running(self, kills: int) -> None:
        self._start_broker()
        self._fill()
        is_killed_at_end = self._draw.random() < 0.7
        for number in range(LIVE_ROUNDS):
            if self.report.kills >= kills:
                return
            is_last = number == LIVE_ROUNDS - 1
            if is_last:
                self._fill()
            kind = self._draw.choices(("capture", "purge", "asked purge", "hold"), (6, 3, 2, 1))[0]
            if is_last and is_killed_at_end:
                self._delete(("broker",))
                return
            if self._draw.random() < 0.1:
                self._delete(("broker",))
                self._start_broker()
            elif not self._do(kind):
                self._delete(("daemon", "worker", "watch"))
        self._recreate()
        self._recreate()

    def _do(self, kind: str) -> bool:
        """Do one round of a kind; return whether there was something for it."""
        if kind == "purge":
            return self._await_purge()
        request = {
            "asked purge": self._purge_request, "hold": self._hold_request, "stage": self._stage_request,
            "restore": self._restore_request, "adopt": self._adopt_request,
        }.get(kind, lambda: None)()  # fmt: skip
        if request is None:
            return False
        self._ask(request)
        return True

    def _fill(self) -> None:
        while len(self.world.model.topics(Place.LIVE)) < TOPICS:
            self._create()

    def _create(self) -> None:
        self._made += 1
        topic = f"{self._draw.choice('ssmlll')}{self._made}"
        partitions = self._draw.randint(3, 6)
        self.world.create(topic, partitions, partitions)
        self._note(f"{topic} was created")

    def _recreate(self) -> None:
        """Create a deleted topic again, for an adoption; it may have a few records."""
        live = set(self.world.model.topics(Place.LIVE).values())
        deleted = [
            (topic_id, topic)
            for topic_id, topic in sorted(self.world.model.topics(Place.DELETED).items())
            if topic.startswith("l") and topic not in live | self._again.keys() and not self._is_held(topic_id)
        ]
        if deleted:
            topic_id, topic = self._draw.choice(deleted)
            partitions = 1 + max(log.partition for log in self.world.model.of(topic_id))
            self.world.create(topic, partitions, self._draw.randint(0, 2))
            self._again[topic] = topic_id
            self._note(f"{topic} was created again")

    def _is_held(self, topic_id: str) -> bool:
        return any(log.is_held or log.may_go for log in self.world.model.of(topic_id))

    def _delete(self, victims: tuple[str, ...]) -> None:
        """Delete a topic or two, and kill amid the captures."""
        world = self.world
        names = sorted(set(world.model.topics(Place.LIVE).values()) - self._again.keys())
        chosen = self._draw.sample(names, 1 if victims == ("broker",) else self._draw.randint(1, 2))
        logs = [log for log in world.model.at(Place.LIVE) if log.topic in chosen]

        def begin() -> None:
            for log in logs:
                world.observer.expect(log.topic_id, DELAYS_MS[log.topic[0]], is_captured=True)
                log.place, log.since_ms, log.delay_ms = Place.DELETED, now_ms(), DELAYS_MS[log.topic[0]]
            for topic in chosen:
                world.rig.client.delete(topic)

        task = Task(begin)
        self._kill(Doing("capture", tuple(log.key for log in logs)), task, victims, seconds=4)
        if self._killed == "broker":
            self._unsure.update(chosen)
        self._note(f"{chosen} were deleted: {task.answer}")
        self._recover(task)

    def _await_purge(self) -> bool:
        due_ms = self.world.observer.next_due_ms()
        if due_ms is None or due_ms > now_ms() + 4000:
            return False
        keys = {log.key for log in self.world.model.logs if log.delay_ms and log.since_ms + log.delay_ms < due_ms + 900}
        task = Task(lambda: None)
        seconds = max(0, due_ms - now_ms()) / 1000 + 2
        self._kill(Doing("purge", tuple(keys)), task, ("daemon", "worker"), seconds=seconds)
        self._recover(task)
        return True

    # -- while the broker is stopped -------------------------------------------------------------------------

    def _while_stopped(self, kills: int) -> None:
        if self.world.broker.is_running:
            self.world.stop_broker()
            self._note("the broker was stopped")
        self.world.settle()
        for number in range(STOPPED_ROUNDS):
            if self.report.kills >= kills:
                break
            # What is staged first comes back, at the latest below: without it a short soak may restore nothing.
            if number == 0 and self._do("stage"):
                continue
            weights = {"stage": 5, "restore": 5, "adopt": 5, "purge": 2, "asked purge": 2, "hold": 1}
            for kind in sorted(weights, key=lambda kind: -self._draw.random() * weights[kind]):
                if self._do(kind):
                    break
        while (request := self._restore_request()) is not None:
            self._ask(request, is_killed=self.report.kills < kills)

    def _found(self) -> list[Found]:
        return look(self.world.broker.log_dirs)[0]

    def _stage_request(self) -> _Request | None:
        world = self.world
        live, staged = world.model.topics(Place.LIVE), self._staged_topics()
        # Of a topic that was just adopted the replica that it replaced is staged as well, for some seconds.
        adopted = {log.topic for log in self._back if log.former_ids}
        names = sorted(set(live.values()) - self._again.keys() - adopted)
        if world.broker.is_running or len(staged) > 2 or len(names) < 4:
            return None
        topic = self._draw.choice(names)
        logs = [log for log in world.model.at(Place.LIVE) if log.topic == topic]
        world.observer.expect(logs[0].topic_id, None)

        def goal() -> bool:
            found = self._found()
            live = {one.content for one in found if one.place == "live"}
            staged = {(one.content, one.topic_id) for one in found if one.place == "staged"}
            return all((log.content, log.topic_id) in staged and log.content not in live for log in logs)

        def done() -> None:
            for log in logs:
                log.place = Place.STAGED

        request = StageRequest(
            source=SourceRequest(), selector=f"id:{logs[0].topic_id}", delays=DelayPolicy(), is_held=True, protected=(),
            is_even_over_limit=True, is_even_if_last=True, is_even_if_unknown=True,
        )  # fmt: skip
        doing = Doing("stage", tuple(log.key for log in logs), world.live_names(topic))
        return _Request(doing, "stage", request, goal, done)

    def _staged_topics(self) -> list[str]:
        """Return ids of what an operator staged."""
        return sorted({log.topic_id for log in self.world.model.at(Place.STAGED) if log.delay_ms is None})

    def _restore_request(self) -> _Request | None:
        world = self.world
        staged = self._staged_topics()
        if world.broker.is_running or not staged:
            return None
        topic_id = self._draw.choice(staged)
        logs = [log for log in world.model.at(Place.STAGED) if log.topic_id == topic_id]
        keys = [log.key for log in logs]
        world.observer.let_go(keys)

        def done() -> None:
            world.observer.keep(keys)
            world.model.restored += len(logs)
            for log in logs:
                log.place = Place.LIVE
            self._back.extend(logs)

        selection = Selection(f"id:{topic_id}")
        request = RestoreRequest(source=SourceRequest(), selection=selection, is_even_if_unknown=False)
        names = tuple(f"{log.topic}-{log.partition}" for log in logs)
        goal = self._live_goal(logs, ("staged", "incoming", "purging"))
        return _Request(Doing("restore", tuple(keys), names), "staged restore", request, goal, done)

    def _live_goal(self, logs: list[Log], beside: tuple[str, ...]) -> Callable[[], bool]:
        """Return whether logs live, without a marker, and lie nowhere else that a name says (``beside``)."""

        def goal() -> bool:
            found = self._found()
            there = {one.content for one in found if one.place == "live" and "replica.json" not in one.inodes}
            more = [one for one in found if one.place in beside]
            return all(log.content in there and not any(map(log.is_in, more)) for log in logs)

        return goal

    def _adopt_request(self) -> _Request | None:
        world = self.world
        if world.broker.is_running or not self._again:
            return None
        topic = self._draw.choice(sorted(self._again))
        old_id = self._again[topic]
        logs = world.model.of(old_id)
        keys = [log.key for log in logs]
        world.observer.let_go(keys)
        new = {one.topic_id for one in self._found() if one.place == "live" and one.topic == topic}
        if len(new) != 1:
            raise SoakError(f"{topic} was created again, and lives with the ids {new}")
        (new_id,) = new
        replaced = [log for log in world.model.at(Place.LIVE) if log.topic == topic]
        asked_ms = now_ms()
        world.observer.expect(new_id, REPLACED_MS)
        for log in replaced:
            log.since_ms, log.delay_ms = asked_ms, REPLACED_MS

        def done() -> None:
            del self._again[topic]
            world.model.adopted += len(logs)
            for log in replaced:
                log.place = Place.STAGED
            for log in logs:
                log.former_ids |= {log.topic_id}
                log.topic_id, log.files = new_id, frozenset()
                log.place, log.delay_ms, log.is_excused = Place.LIVE, None, False
            self._back.extend(logs)

        request = AdoptRequest(
            source=SourceRequest(), selection=Selection(f"id:{old_id}", names=self._names_of(logs)), as_topic=topic,
            delays=DelayPolicy(default_ms=REPLACED_MS),
        )  # fmt: skip
        names = tuple(f"{topic}-{log.partition}" for log in logs)
        # What its broker has not removed yet may be captured again meanwhile, under the former id.
        goal = self._live_goal(logs, ("incoming", "purging"))
        made = tuple(f"{new_id}_{log.partition}" for log in logs)
        return _Request(Doing("adopt", tuple(keys), names, made), "staged adopt", request, goal, done)

    def _names_of(self, logs: list[Log]) -> tuple[str, ...]:
        """Return one name below ``deleting/`` of each log: a directory that its broker changed was captured twice."""
        staged = [one for one in self._found() if one.place == "staged"]
        return tuple(next(one.name for one in staged if log.is_in(one)) for log in logs)

    # -- at any time -----------------------------------------------------------------------------------------

    def _kept_topics(self) -> list[str]:
        found = self.world.model.topics(Place.DELETED)
        return sorted(t for t, name in found.items() if name.startswith("l") and t not in self._again.values())

    def _purge_request(self) -> _Request | None:
        """Ask for the purge of a topic before its deadline, if some are kept."""
        world, kept = self.world, self._kept_topics()
        if len(kept) < 3:
            return None
        topic_id = self._draw.choice(kept)
        logs = world.model.of(topic_id)
        keys = [log.key for log in logs]
        world.observer.let_go(keys)
        for log in logs:
            log.may_go = True

        def goal() -> bool:
            staged = [one for one in self._found() if one.place in ("staged", "purging")]
            return not any(log.is_in(one) for log in logs for one in staged)

        selection = Selection(f"id:{topic_id}")
        request = PurgeRequest(source=SourceRequest(), selection=selection, is_topic_removed=True)
        return _Request(Doing("purge", tuple(keys)), "staged purge", request, goal, lambda: None)

    def _hold_request(self) -> _Request | None:
        world = self.world
        kept = [topic_id for topic_id in self._kept_topics() if not self._is_held(topic_id)]
        if not kept:
            return None
        topic_id = self._draw.choice(kept)
        logs = world.model.of(topic_id)
        contents = {log.content for log in logs}

        def goal() -> bool:
            staged = [one for one in self._found() if one.place == "staged"]
            mine = [one for one in staged if any(log.is_in(one) for log in logs)]
            is_whole = {one.content for one in mine} == contents
            return is_whole and all((one.marker or {}).get("delay_ms", 0) is None for one in mine)

        def done() -> None:
            for log in logs:
                log.is_held = True

        doing = Doing("hold", tuple(log.key for log in logs))
        return _Request(doing, "staged hold", Selection(f"id:{topic_id}"), goal, done)

    def _ask(self, one: _Request, *, is_killed: bool = True) -> None:
        """Ask the daemon for something, kill amid it, and ask again until it is done."""
        task = Task(lambda: self.world.ask(one.command, one.request))
        if is_killed:
            self._kill(one.doing, task, ("daemon", "worker"), seconds=_REQUEST_SECONDS)
            self._recover(task, is_settled=False)
        else:
            task.run()
        self.world.until_asked(one.command, one.request, one.goal, task.answer)
        one.done()
        self.world.judge.is_recovered = one.command in ("stage", "staged restore", "staged adopt")
        waited = self.world.settle()
        self.world.judge.is_recovered = False
        self._note(f"{one.command} of {one.doing.keys[0]} was done; waited for {waited or 'nothing'}")

    # -- kills -----------------------------------------------------------------------------------------------

    def _kill(self, doing: Doing, task: Task, victims: tuple[str, ...], *, seconds: float) -> None:
        """Begin something and kill a process amid it, or else after it."""
        world = self.world
        weights = {"daemon": 6, "worker": 4, "watch": 1, "broker": 1}
        victim = self._draw.choices(victims, [weights[one] for one in victims])[0]
        if victim in ("worker", "watch") and self._worker_kills >= _WORKER_KILLS:
            victim = "daemon"
        is_aimed = self._draw.random() < 0.9
        self._killed = victim
        with ends(world.processes()) as left:
            what = self._aim.kill(
                doing, task, world.processes, lambda: self._pid(victim),
                seconds=seconds if is_aimed else self._draw.random(), is_aimed=is_aimed,
            )  # fmt: skip
            self._down_ms = now_ms()
            self._note(f"{victim} was killed during {doing.kind}: {what}")
            if victim == "daemon":
                assert world.daemon.process is not None
                world.daemon.process.wait()
                if still := left():
                    raise SoakError(f"processes: the daemon was killed, and these live on: {still}")
        self.report.killed[what, victim] += 1

    def _pid(self, victim: str) -> int | None:
        world = self.world
        if victim == "daemon":
            return world.pid
        if victim == "broker":
            return world.broker.pid
        found = [pid for pid in children(world.pid) if is_watch(pid) == (victim == "watch")]
        return self._draw.choice(found) if found else None

    def _recover(self, task: Task, *, is_settled: bool = True) -> None:
        """Start what was killed, and see that everything is as it must be."""
        world = self.world
        if self._killed == "broker":
            world.judge.is_broker_running = False
            while world.broker.is_running:
                time.sleep(0.01)
        world.judge_unsettled()
        if self._killed == "daemon" or world.daemon.has_ended():
            world.daemon.start()
            self._worker_kills = 0
        elif self._killed == "worker":
            self._worker_kills += 1
            self._await_reopened()
        self._excuse(now_ms() - self._down_ms)
        self._note(f"what was killed runs again after {now_ms() - self._down_ms} ms")
        task.join(60)
        if task.is_alive():
            raise SoakError("a request was never answered")
        if is_settled:
            self._note(f"settled; waited for {world.settle() or 'nothing'}")

    def _await_reopened(self) -> None:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with suppress(AssertionError):
                if len([pid for pid in children(self.world.pid) if not is_watch(pid)]) == 3:
                    return
            time.sleep(0.1)

    def _excuse(self, down_ms: int) -> None:
        """Excuse what was deleted while the daemon was down for long."""
        if self._killed in ("daemon", "worker") and down_ms > DELETE_DELAY_MS - SWEEP_MS:
            self.report.too_long += 1
            for log in self.world.model.at(Place.DELETED):
                if log.since_ms > self._down_ms - DELETE_DELAY_MS:
                    log.is_excused = True
