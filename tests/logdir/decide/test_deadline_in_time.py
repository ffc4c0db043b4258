"""Deadlines over a virtual host: what is true is known to the test alone.

The law, at every sweep: what we count is never more than what has truly gone by since the staging, and less only by
what was not credited of the gaps after it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from logdir.clock import Instant
from logdir.decide.staged.deadline import CLOCK_ERROR_MS, Due, Held, beat, begin, due
from logdir.formats.own import heartbeat_file
from logdir.formats.own.heartbeat_file import Heartbeat
from logdir.formats.own.replica_marker import ReplicaMarker
from tests.logdir.decide.builders import HOUR_MS, MARKER
from tests.proof.claims import REBOOTS, RESTARTS, WALL_CLOCK
from tests.proof.plugin import Recorder

SEED = 24
SWEEP_MS = 60 * 1000
TEN_YEARS_MS = 10 * 365 * 24 * HOUR_MS


@dataclass
class Host:
    """A host whose true time only the test knows."""

    draw: random.Random
    true_ms: int = 1_800_000_000_000
    boots: int = 0
    booted_ms: int = 1_800_000_000_000 - 3 * HOUR_MS
    error_ms: int = 0
    synchronised: bool = True
    file: bytes = b""
    """The heartbeat as it lies on the disk."""
    seen_true_ms: int = 0
    gaps: list[tuple[int, int, int]] = field(default_factory=list)
    """True end of what was seen before, true start of the boot, number of the boot."""

    def now(self) -> Instant:
        return Instant(
            boot_id=f"boot-{self.boots}",
            boottime_ms=self.true_ms - self.booted_ms,
            wall_ms=self.true_ms + self.error_ms,
            is_synchronised=self.synchronised,
        )

    def heartbeat(self) -> Heartbeat:
        return heartbeat_file.parse(self.file)

    def beat(self) -> Heartbeat:
        now = self.now()
        heartbeat = beat(self.heartbeat(), now) if self.file else begin(now)
        self.file = heartbeat_file.render(heartbeat)
        self.seen_true_ms = self.true_ms
        return heartbeat

    def stage(self, delay_ms: int) -> ReplicaMarker:
        now = self.now()
        return replace(MARKER, delay_ms=delay_ms, boot_id=now.boot_id, boottime_ms=now.boottime_ms)

    def reboot(self) -> None:
        """Go down for a while; a boot without a heartbeat may lie between. Or the disk comes into another host."""
        self.true_ms += self.draw.choice((1_000, 90_000, 10 * 60_000, HOUR_MS, 30 * HOUR_MS))
        self.boots += self.draw.choice((1, 1, 1, 2))
        is_moved = self.draw.random() < 0.2
        self.booted_ms = self.true_ms - (self.draw.randrange(60 * 24 * HOUR_MS) if is_moved else 0)
        self.gaps.append((self.seen_true_ms, self.booted_ms, self.boots))
        self.true_ms += self.draw.randrange(1_000, 5 * 60_000)

    def uncredited_ms(self, since_boot: int, heartbeat: Heartbeat) -> int:
        known = {boot.boot_id: boot for boot in heartbeat.boots}
        gaps = [(end, start, known[f"boot-{number}"]) for end, start, number in self.gaps if number > since_boot]
        return sum(start + boot.from_ms - end - boot.credited_ms for end, start, boot in gaps)


def test_restarts_of_the_process_move_no_deadline(record_proof: Recorder) -> None:
    count = RESTARTS.count("restarts")
    draw = random.Random(SEED)
    host = Host(draw)
    host.beat()
    restarts = purges = 0
    waiting: list[tuple[int, ReplicaMarker]] = []
    while restarts < count:
        end_ms = host.true_ms + int(draw.expovariate(1 / (20 * SWEEP_MS))) + 1
        # A process starts: what it knows is on the disk; it sweeps at once, then every minute until it is killed.
        while host.true_ms < end_ms:
            host.error_ms = draw.choice((0, 0, TEN_YEARS_MS, -TEN_YEARS_MS, draw.randrange(10**9)))
            host.synchronised = draw.random() < 0.5
            heartbeat = host.beat()
            for true_due_ms, marker in list(waiting):
                verdict = due(marker, heartbeat, host.now())
                if host.true_ms < true_due_ms:
                    assert not isinstance(verdict, Due)
                    continue
                assert isinstance(verdict, Due)
                assert host.true_ms - true_due_ms <= SWEEP_MS
                waiting.remove((true_due_ms, marker))
                purges += 1
            if len(waiting) < 5:
                delay_ms = draw.randrange(1, 8 * HOUR_MS)
                waiting.append((host.true_ms + delay_ms, host.stage(delay_ms)))
            host.true_ms += min(SWEEP_MS, end_ms - host.true_ms)
        restarts += 1
    assert purges > count // 5
    record_proof(RESTARTS, {"restarts": restarts, "purges": purges}, seeds=SEED)


def test_reboots_make_nothing_early_and_late_only_by_gaps_not_credited(record_proof: Recorder) -> None:
    count = REBOOTS.count("reboots")
    draw = random.Random(SEED)
    reboots = purges = given = 0
    while reboots < count:
        host = Host(draw)
        host.beat()
        waiting: list[tuple[int, int, ReplicaMarker]] = []
        # One life with a long list of boots, the others with short ones.
        for _ in range(count // 5 if not reboots else 25):
            host.synchronised = draw.random() < 0.7
            # What the kernel calls synchronised may be 16 s wrong; anything else may be anything.
            wrong = 16_000 if host.synchronised else TEN_YEARS_MS
            host.error_ms = draw.randrange(-wrong, wrong)
            for _ in range(draw.choice((1, 3, 25, 40))):
                heartbeat = host.beat()
                now = host.now()
                for staged_ms, boot, marker in list(waiting):
                    verdict = due(marker, heartbeat, now)
                    true_ms = host.true_ms - staged_ms
                    assert marker.delay_ms is not None
                    assert not isinstance(verdict, Held)
                    counted = verdict.elapsed_ms if isinstance(verdict, Due) else marker.delay_ms - verdict.remaining_ms
                    assert counted <= true_ms
                    assert counted == true_ms - host.uncredited_ms(boot, heartbeat)
                    if isinstance(verdict, Due):
                        waiting.remove((staged_ms, boot, marker))
                        purges += 1
                host.true_ms += draw.randrange(1, SWEEP_MS)
                if len(waiting) < 4:
                    waiting.append((host.true_ms, host.boots, host.stage(draw.randrange(1, 12 * HOUR_MS))))
                host.true_ms += draw.randrange(1, SWEEP_MS)
            boots = host.heartbeat().boots
            given += boots[-1].credited_ms > 0
            host.reboot()
            reboots += 1
    assert purges > count // 20
    assert given > count // 20
    record_proof(REBOOTS, {"reboots": reboots, "purges": purges, "gaps credited": given}, seeds=SEED)


def test_ten_years_of_wall_clock_make_nothing_early(record_proof: Recorder) -> None:
    count = WALL_CLOCK.count("jumps")
    draw = random.Random(SEED)
    host = Host(draw)
    host.beat()
    staged_ms, marker = host.true_ms, host.stage(10**12)
    jumps = 0
    for number in range(count):
        # Right but for a minute now and then, which the kernel may not notice; or wrong, and the kernel knows.
        is_wrong = draw.random() < 0.3
        host.synchronised = not is_wrong
        jumped_ms = draw.choice((TEN_YEARS_MS, -TEN_YEARS_MS))
        for minute in range(draw.choice((2, 20))):
            host.error_ms = jumped_ms if is_wrong or minute == draw.randrange(20) else 0
            verdict = due(marker, host.beat(), host.now())
            assert not isinstance(verdict, Due | Held)
            assert 10**12 - verdict.remaining_ms <= host.true_ms - staged_ms
            host.true_ms += SWEEP_MS
        # The last thing this boot says is ten years away.
        if draw.random() < 0.5:
            host.error_ms, host.synchronised = jumped_ms, True
            host.beat()
        jumps += 1
        host.reboot()
        if number % 50 == 49:
            host.file = b""
            host.gaps.clear()
            host.beat()
            staged_ms, marker = host.true_ms, host.stage(10**12)
    record_proof(WALL_CLOCK, {"jumps": jumps}, seeds=SEED)


def test_a_credit_falls_short_by_no_more_than_two_clock_errors() -> None:
    host = Host(random.Random(SEED))
    for _ in range(30):
        host.beat()
        host.true_ms += SWEEP_MS
    host.true_ms = host.seen_true_ms
    host.reboot()
    for _ in range(40):
        heartbeat = host.beat()
        host.true_ms += SWEEP_MS
    assert host.uncredited_ms(0, heartbeat) == CLOCK_ERROR_MS
