"""Rounds of a soak: one command each, killed or not, judged at once and, with what the next one makes of it, again.

Rounds come in episodes: each starts with a broker of its own and follows from its seed, so that a violation is replayed
by its episode alone. When the kill comes is the kernel's to say; what is run, and at which change, is the seed's.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.broker import CLUSTER, Broker
from tests.soak.disk import look, work_root
from tests.soak.host import Ended, Host, Kill
from tests.soak.model import Action, Replica, judge

EPISODE = 40
"""Rounds of one episode."""
_PLAIN = 0.04
"""How often the installed script itself is started."""
_FOUR_HOURS_MS = 4 * 60 * 60 * 1000
_DELAYS_MS = (1, 300, _FOUR_HOURS_MS, _FOUR_HOURS_MS)
_EARLIER = ("--even-if-early", "--include-held")
_KEPT = ("--even-if-unknown", "--even-if-last", "--even-if-assigned", "--even-if-older-metadata", "--even-over-limit")


class SoakError(Exception):
    """A violation: what parted, what led there, and how to go there again."""


@dataclass(slots=True)
class Report:
    """What was done."""

    rounds: int = 0
    kills: int = 0
    judged: int = 0
    done: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    amid: Counter[str] = field(default_factory=Counter)
    """Kills after the first change was seen."""
    cpu_s: float = 0.0

    def table(self) -> str:
        """Return the report as text."""
        kinds = sorted(set(self.done) | set(self.killed))
        rows = [f"{kind:16} {self.done[kind]:7} {self.killed[kind]:7} {self.amid[kind]:7}" for kind in kinds]
        head = f"{'command':16} {'done':>7} {'killed':>7} {'amid':>7}"
        last = (
            f"{self.rounds} rounds, {self.kills} kills, {self.judged} judgements, "
            f"{1000 * self.cpu_s / max(1, self.rounds):.0f} ms of CPU a round, 0 violations"
        )
        return "\n".join([head, *rows, last])


def flags_of(host: Host, verb: tuple[str, ...]) -> frozenset[str]:
    """Return the options that a command's own help names."""
    text = host.run((*verb, "--help"), (), Kill()).output
    return frozenset(word.strip("[]()|,") for word in text.split() if word.strip("[]()|,").startswith("--"))


class Episode:
    """Some rounds on one broker."""

    def __init__(self, base: Path, seed: str, host: Host, report: Report, flags: dict[str, frozenset[str]]) -> None:
        self._chance = random.Random(seed)
        self._host, self._report, self._flags, self._seed = host, report, flags, seed
        self._base = base
        # Of another user's log dirs the command would become that user, who may not be able to read this tree.
        owner = (0, 4712) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
        self._broker = Broker(base, self._chance, uid=owner[0], gid=owner[1])
        self._model = self._broker.model
        self._log: list[str] = []
        self._export = base / "export"
        self._export.mkdir()
        self._tops: list[list[str]] = []
        self._goal = ""

    # -- which command ---------------------------------------------------------------------------------------

    def _named(self, *argv: str, apply: bool = True, allow: tuple[str, ...] = _KEPT) -> tuple[str, ...]:
        """Return arguments with the log dirs, and with what overrides of ``allow`` the command has."""
        verb = (
            " ".join(word for word in argv[:2] if not word.startswith("-"))
            if argv[0] in ("staged", "layout")
            else argv[0]
        )
        overrides = tuple(flag for flag in allow if flag in self._flags.get(verb, ()))
        dirs = ("--log-dirs", ",".join(map(str, self._model.log_dirs)))
        return (*argv, *dirs, *overrides, *(("--apply",) if apply else ()))

    def _select(self, candidates: list[Replica], *others: str) -> tuple[str, frozenset[int]]:
        """Return a selector, and the replicas among ``candidates`` that it means."""
        one = self._chance.choice(candidates)
        way = self._chance.choice(("id", "id", "id", "name", "topic"))
        if way == "id":
            return one.id_name, frozenset((one.inode,))
        same = [other for other in candidates if other.topic == one.topic]
        if way == "topic":
            return one.topic, frozenset(other.inode for other in same)
        return one.name, frozenset(other.inode for other in same if other.partition == one.partition)

    def _stage(self) -> Action | None:
        live = self._model.at("live")
        if not live:
            return None
        text, selected = self._select(live)
        delay = self._chance.choice((None, *_DELAYS_MS))
        more = ("--hold",) if delay is None else ("--delay", f"{delay}ms")
        delays = frozenset((delay,))
        source: tuple[str, ...] = ()
        # A topic made again, and its former self restored: a dump names one of the two ids, and is not known to be
        # younger than what it leaves out.
        ids = {one.topic_id for one in live if one.topic in {of.topic for of in live if of.inode in selected}}
        is_made_again = len(ids) > 1
        match self._chance.choice(("nothing", "another", "last", "gone")):
            case "nothing":
                delays = frozenset((None,))
            case "another":
                source = self._znodes(isr=(1, 2))
                delays = frozenset((None, delay)) if is_made_again else delays
            case "last":
                source = self._znodes(isr=(1,))
                delays = frozenset((None, delay)) if is_made_again else frozenset((None,))
            case "gone":
                # When a dump was taken nothing says: what it leaves out may be younger.
                delays = frozenset((None,))
                source = self._znodes(without=selected)
        argv = self._named("stage", text, *more, *source)
        return Action(kind="stage", argv=argv, selected=selected, delays=delays)

    def _of_staged(self, kind: str) -> Action | None:
        staged = self._model.at("staged")
        if not staged:
            return None
        text, selected = self._select(staged)
        if kind == "export":
            argv = self._named("staged", "export", text, "-o", str(self._export))
        elif kind == "purge":
            return Action(
                kind=kind,
                argv=self._named("staged", "purge", text, allow=(*_KEPT, *_EARLIER)),
                selected=selected,
                is_early=True,
            )
        else:
            argv = self._named("staged", kind, text)
        return Action(kind=kind, argv=argv, selected=selected)

    def _purge_due(self) -> Action:
        selected = frozenset(replica.inode for replica in self._model.at("staged"))
        argv = self._named("staged", "purge", *self._znodes(), allow=("--even-if-older-metadata",))
        return Action(kind="purge", argv=argv, selected=selected)

    def _reconcile(self) -> Action | None:
        live = self._model.at("live")
        if not live:
            return None
        leave = self._chance.sample(live, self._chance.randint(1, min(3, len(live))))
        delay = self._chance.choice(_DELAYS_MS)
        argv = self._named("reconcile", *self._request(leave), "--delay", f"{delay}ms")
        # What a stock broker renamed away may be captured; what it left out is staged.
        return Action(
            kind="reconcile", argv=argv, selected=frozenset(one.inode for one in leave), delays=frozenset((delay, None))
        )

    def _request(self, leave: list[Replica]) -> tuple[str, str]:
        """Write a full request that leaves some replicas out; return how it is named."""
        self._model.sequence += 1
        topics: dict[tuple[str, str], list[int]] = {}
        for replica in self._model.at("live"):
            if replica not in leave:
                topics.setdefault((replica.topic, replica.topic_id), []).append(replica.partition)
        states = [
            {
                "topicName": topic,
                "topicId": topic_id,
                "partitionStates": [
                    {
                        "partitionIndex": number, "controllerEpoch": 1, "leader": 1, "leaderEpoch": 0, "isr": [1, 2],
                        "partitionEpoch": 0, "replicas": [1, 2], "addingReplicas": [], "removingReplicas": [],
                        "isNew": False,
                    }
                    for number in numbers
                ],
            }
            for (topic, topic_id), numbers in topics.items()
        ]  # fmt: skip
        document = {
            "document": 1, "api": "LeaderAndIsr", "version": 7, "form": "shipped", "sequence": self._model.sequence,
            "partitions": sum(map(len, topics.values())),
            "body": {
                "controllerId": 1, "controllerEpoch": 5, "brokerEpoch": 40, "topicStates": states, "type": 2,
                "liveLeaders": [],
            },
        }  # fmt: skip
        path = self._base / "request.json"
        path.write_text(json.dumps(document))
        return "--from", f"request:{path}"

    def _znodes(self, isr: tuple[int, ...] = (1, 2), without: frozenset[int] = frozenset()) -> tuple[str, str]:
        """Write what ZooKeeper would say of what lives, less some; return how it is named."""
        topics: dict[tuple[str, str], dict[str, list[int]]] = {}
        document: dict[str, object] = {}
        for one in self._model.at("live"):
            if one.inode not in without:
                topics.setdefault((one.topic, one.topic_id), {})[str(one.partition)] = [1, 2]
                document[f"/brokers/topics/{one.topic}/partitions/{one.partition}/state"] = {
                    "controller_epoch": 1, "leader": isr[0], "version": 1, "leader_epoch": 0, "isr": list(isr),
                }  # fmt: skip
        document |= {
            f"/brokers/topics/{topic}": {
                "version": 3, "topic_id": topic_id, "partitions": partitions, "adding_replicas": {},
                "removing_replicas": {},
            }
            for (topic, topic_id), partitions in topics.items()
        }  # fmt: skip
        path = self._base / "znodes.json"
        path.write_text(json.dumps(document))
        return "--from", f"znodes:{path}"

    def _layout(self) -> Action:
        """Go on with the change of layout that is under way, or begin one."""
        moving = frozenset(replica.inode for replica in self._model.at("live", "by-id"))
        if not self._model.in_layout:
            self._write_plan()
            self._model.in_layout, self._goal = True, "apply"
        if self._goal == "apply":
            argv = self._named("layout", "apply", str(self._base / "plan.jsonl"))
            return Action(kind="layout-apply", argv=argv, selected=moving)
        return Action(kind="layout-rollback", argv=self._named("layout", "rollback"), selected=moving)

    def _write_plan(self) -> None:
        log_dirs = list(map(str, self._model.log_dirs))
        header = {
            "plan": 1, "verb": "layout", "cluster": "c", "cluster_id": CLUSTER, "node_id": 1,
            "inventory_sha256": "0" * 64, "log_dirs": log_dirs,
        }  # fmt: skip
        moving = sorted(self._model.at("live"), key=lambda one: (one.disk, one.name.encode()))
        steps = [
            {
                "step": number, "op": "relayout", "log_dir": log_dirs[one.disk], "from": one.name,
                "to": f"{one.topic_id[:2]}/{one.id_name}", "topic": one.topic, "topic_id": one.topic_id,
                "partition": one.partition, "id_from": "own", "log_bytes": 0,
            }
            for number, one in enumerate(moving, 1)
        ]  # fmt: skip
        lines = "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in (header, *steps))
        footer = {"steps": len(steps), "sha256": hashlib.sha256(lines.encode()).hexdigest()}
        text = lines + json.dumps(footer, sort_keys=True, separators=(",", ":")) + "\n"
        (self._base / "plan.jsonl").write_text(text)

    def _uninstall(self) -> Action:
        staged = frozenset(replica.inode for replica in self._model.at("staged"))
        argv = self._named("uninstall", *(("--restore",) if staged else ()))
        return Action(kind="uninstall", argv=argv, selected=staged)

    def _reading(self) -> Action:
        choices = (
            ("inventory", self._named("inventory", apply=False, allow=())),
            ("ls", self._named("staged", "ls", apply=False, allow=())),
            ("strays", self._named("strays", *self._request([]), apply=False, allow=())),
            ("layout-status", self._named("layout", "status", apply=False, allow=())),
            ("planned", self._named("stage", "*", "--internal", apply=False)),
        )
        kind, argv = self._chance.choice(choices)
        return Action(kind=kind, argv=argv, changes=False)

    def _next(self) -> Action:
        model = self._model
        if model.in_layout and self._chance.random() < 0.85:
            return self._layout()
        if model.in_layout:
            return self._reading()
        if model.is_rooted is not True:
            return Action(kind="init", argv=self._named("init", allow=()))
        ways: list[tuple[float, Callable[[], Action | None]]] = [
            (18, self._stage), (16, lambda: self._of_staged("restore")), (12, lambda: self._of_staged("purge")),
            (6, self._purge_due), (5, lambda: self._of_staged("hold")), (5, lambda: self._of_staged("export")),
            (12, self._reconcile), (4, self._layout), (4, self._uninstall), (6, self._reading),
        ]  # fmt: skip
        while True:
            (way,) = self._chance.choices([way for _, way in ways], [weight for weight, _ in ways])
            action = way()
            if action is not None:
                return action

    # -- running it -----------------------------------------------------------------------------------------

    def _a_kill(self, action: Action) -> Kill:
        draw = self._chance.random()
        if draw < 0.3 or not action.changes:
            return Kill()
        if draw < 0.75:
            most = 80 if action.kind in ("init", "uninstall", "stage", "reconcile") else 24
            return Kill(changes=max(1, int(most ** self._chance.random())))
        return Kill(after_s=self._chance.uniform(0.005, 0.12))

    def run(self, rounds: int) -> None:
        """Go through some rounds.

        Raises:
            SoakError: a violation.
        """
        for number in range(rounds):
            if not self._model.in_layout and self._chance.random() < 0.3:
                self._work(number)
            action = self._next()
            kill = self._a_kill(action)
            if number == rounds - 1 and self._model.is_rooted is True and not self._model.in_layout:
                # An episode ends with an uninstall that is not killed: staged replicas go back, work roots go away.
                action, kill = self._uninstall(), Kill()
            self._judged(number, action, kill, is_running=False)
            self._report.rounds += 1

    def _work(self, number: int) -> None:
        """Start the broker on what is there, whatever was killed; it works, may see a command, and stops."""
        wrong = self._broker.would_not_start(self._directories())
        if wrong:
            self._fail(number, wrong)
        with self._broker.running():
            self._broker.start()
            self._broker.stop(is_clean=False)
            if self._model.is_rooted and self._chance.random() < 0.2:
                action = self._chance.choice((self._stage, lambda: self._of_staged("restore"), self._reconcile))()
                if action is not None:
                    self._judged(number, action, Kill(), is_running=True)
        self._broker.stop(is_clean=self._chance.random() < 0.6)
        self._log.append(f"{number}: a broker ran")

    def _directories(self) -> list[list[str]]:
        return [sorted(path.name for path in log_dir.iterdir() if path.is_dir()) for log_dir in self._model.log_dirs]

    def _judged(self, number: int, action: Action, kill: Kill, *, is_running: bool) -> None:
        if is_running:
            # Beside a running broker none of this may change anything.
            action = Action(kind=f"{action.kind}-beside", argv=action.argv, changes=False)
        tops = [*self._model.log_dirs, *filter(Path.is_dir, map(work_root, self._model.log_dirs))]
        began_ms = time.time_ns() // 1_000_000
        ended = self._host.run(action.argv, tops, kill, is_plain=self._chance.random() < _PLAIN)
        window = began_ms, time.time_ns() // 1_000_000 + 1
        self._log.append(
            f"{number}: logdirctl {' '.join(action.argv)} ({kill}) -> {ended.status} after {ended.changes} changes"
        )
        wrong = [] if ended.status in (0, 1, 3, 4, -9) else [f"exit status {ended.status}"]
        if is_running and ended.status != 3:
            wrong.append(f"exit status {ended.status} beside a running broker, expected 3")
        is_done = ended.status == 0
        if is_done and action.kind == "layout-apply":
            self._goal = "rollback"
        if action.kind == "layout-apply" and not is_done and self._chance.random() < 0.3:
            self._goal = "rollback"
        if action.kind == "export":
            wrong += self._judge_export(action, is_done=is_done)
        seen = look(self._model.log_dirs)
        wrong += judge(self._model, seen, action, is_done=is_done, window=window)
        if action.kind == "layout-rollback" and is_done:
            self._model.in_layout = False
            wrong += judge(self._model, seen, Action(kind="look", argv=(), changes=False), is_done=True, window=window)
        self._note(action, ended)
        if wrong:
            self._fail(number, [*wrong, ended.output])

    def _judge_export(self, action: Action, *, is_done: bool) -> list[str]:
        wrong = []
        if is_done:
            copies = {path.name: path for path in self._export.rglob("*.log")}
            for inode in action.selected:
                replica = self._model.replicas[inode]
                for name, file in replica.files.items():
                    if name.endswith(".log"):
                        held = [path for path in self._export.rglob(name) if path.stat().st_size == file.size]
                        digests = {hashlib.blake2b(path.read_bytes(), digest_size=12).hexdigest() for path in held}
                        if file.digest not in digests:
                            wrong.append(f"export of {replica.name}: {name} is not among {sorted(copies)}")
        for path in self._export.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return wrong

    def _note(self, action: Action, ended: Ended) -> None:
        report = self._report
        report.judged += 1
        report.cpu_s += ended.cpu_s
        if ended.was_killed:
            report.kills += 1
            report.killed[action.kind] += 1
            report.amid[action.kind] += ended.changes > 0
        elif ended.status == 0:
            report.done[action.kind] += 1

    def _fail(self, number: int, wrong: list[str]) -> None:
        lines = [*(f"violation: {line}" for line in wrong), "what led there:", *self._log[-8:]]
        replay = f"replay: python -m tests.soak --episode {self._seed} (round {number} of it)"
        raise SoakError("\n".join([*lines, replay]))


class Soak:
    """Episodes one after the other."""

    def __init__(self, base: Path, *, is_kept: bool = False) -> None:
        self._base, self._is_kept = base, is_kept
        self.report = Report()

    def run(self, episodes: list[str], rounds: int) -> Report:
        """Go through episodes; stop at the first violation.

        Args:
            episodes: Their seeds.
            rounds: Of all of them together; each takes ``EPISODE`` of them at most.

        Raises:
            SoakError: a violation.
        """
        scratch = self._base / "scratch"
        scratch.mkdir()
        before = os.times()
        host = Host(self._base, self._warm(scratch))
        try:
            verbs = (
                ("stage", "reconcile", "uninstall", "init"),
                ("restore", "purge", "hold", "export"),
                ("apply", "rollback"),
            )
            groups = "", "staged ", "layout "
            flags = {
                f"{group}{verb}": flags_of(host, tuple(f"{group}{verb}".split()))
                for group, names in zip(groups, verbs, strict=True)
                for verb in names
            }
            for seed in episodes:
                folder = self._base / "episode"
                folder.mkdir()
                Episode(folder, seed, host, self.report, flags).run(min(EPISODE, rounds - self.report.rounds))
                shutil.rmtree(folder)
        finally:
            host.close()
        after = os.times()
        # All of it: the judge, the launcher, every command.
        self.report.cpu_s = sum(after[:4]) - sum(before[:4])
        return self.report

    def _warm(self, scratch: Path) -> list[list[str]]:
        broker = Broker(scratch, random.Random(0), uid=os.geteuid(), gid=os.getegid())
        dirs = ["--log-dirs", ",".join(map(str, broker.model.log_dirs))]
        (scratch / "request.json").write_text("{}")
        (scratch / "plan.jsonl").write_text("{}\n")
        source = ["--from", f"request:{scratch / 'request.json'}"]
        name = broker.model.at("live")[0].name
        return [
            ["init", *dirs, "--apply"], ["stage", name, *dirs, "--apply"], ["staged", "ls", *dirs],
            ["staged", "restore", name, *dirs, "--apply"], ["staged", "hold", name, *dirs, "--apply"],
            ["staged", "export", name, *dirs, "-o", str(scratch), "--apply"], ["staged", "purge", *dirs, *source],
            ["reconcile", *dirs, *source], ["strays", *dirs, *source], ["inventory", *dirs],
            ["layout", "apply", str(scratch / "plan.jsonl"), *dirs, "--apply"], ["layout", "status", *dirs],
            ["layout", "rollback", *dirs, "--apply"], ["uninstall", *dirs, "--apply"],
        ]  # fmt: skip


def seeds(seed: int, rounds: int) -> list[str]:
    """Return the seeds of as many episodes as these rounds take."""
    return [f"{seed}.{number}" for number in range(-(-rounds // EPISODE))]
