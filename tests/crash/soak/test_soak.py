"""A real process, killed at random instants, thousands of times: nothing lost, early, doubled or stuck.

The schedule of a failure is printed, and ``python -m tests.crash.soak --replay FILE`` goes through it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.seeded.patched import ROOT, copy
from tests.crash.soak import rounds
from tests.crash.soak.looks import WORK, look
from tests.crash.soak.rounds import Soak, SoakError, Workers
from tests.logdir.disk.rescue import quick_path
from tests.logdir.disk.staged_rig import GID, UID
from tests.operations.registry import MORE, kinds, seeded
from tests.operations.seeded import Seeded
from tests.proof.claims import KILLS
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size

SEED = 4
# Of twenty kills a few more or less come between two operations.
LEAST_AMID = 0.4 if SIZE is Size.SAMPLE else 0.6


def test_a_process_killed_at_any_instant_loses_doubles_and_sticks_nothing(
    tmp_path: Path, record_proof: Recorder
) -> None:
    with quick_path(tmp_path) as base:
        report = Soak(base, SEED).run(KILLS.count("kills"))
    print(report.table())
    assert report.share_amid >= LEAST_AMID, report.table()
    assert sum(report.done.values()) > report.kills / 2
    if SIZE is not Size.SAMPLE:
        assert [kind for kind in (*kinds(), "recover") if not report.amid[kind]] == []
    if SIZE is Size.FULL:
        steps = {kind: {step for step in report.steps if step.startswith(f"{kind}: ")} for kind in kinds()}
        # In memory only a sync takes time, so of the other calls few are ever hit.
        assert {kind: found for kind, found in steps.items() if len(found) < 3} == {}
    counts = {"kills": report.kills, "operations done": sum(report.done.values()), "judgements": report.judged}
    counts |= {f"amid {kind}": number for kind, number in sorted(report.amid.items()) if kind != "start"}
    record_proof(KILLS, counts, seeds=SEED, least={"share amid an operation": report.share_amid})


@pytest.mark.slow
def test_a_schedule_that_was_written_down_leads_to_the_same_states(tmp_path: Path) -> None:
    with quick_path(tmp_path) as base, seen_by_the_judge() as seen:
        first = Soak(base / "first", SEED).run(25)
        wanted = list(seen)
        seen.clear()
        again = Soak(base / "again", SEED, first.schedule).run(25)
    assert len(wanted) == first.judged == again.judged
    assert seen == wanted


@contextmanager
def seen_by_the_judge() -> Iterator[list[object]]:
    """Yield where everything lay at each judgement."""
    seen: list[object] = []
    judge = rounds.judge

    def note(model: object, found: object, *, is_recovered: bool) -> list[str]:
        wrong = judge(model, found, is_recovered=is_recovered)  # type: ignore[arg-type]
        # What lies nowhere is of an adoption that was said to begin: a kill there may come before or after the word.
        everywhere = (known for known in model.known.values() if known.places)  # type: ignore[attr-defined]
        seen.append(sorted((known.key, sorted(known.places)) for known in everywhere))
        return wrong

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "judge", note)
        yield seen


# That it catches what it is there to catch.

BUGS = tuple(bug for _, bug in seeded() if bug.killed)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_that_was_sown_is_caught_by_killing(bug: Seeded, tmp_path: Path) -> None:
    copy(tmp_path, bug.changes)
    paths = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    paths[MORE] = os.environ.get(MORE, "")
    with quick_path(tmp_path) as base, pytest.raises(SoakError) as fault:
        Soak(base / "soak", SEED, workers=Workers(paths, cwd=tmp_path)).run(400)
    assert any(line.startswith(bug.killed) for line in str(fault.value).splitlines()), str(fault.value)


def test_the_judge_sees_each_thing_that_goes_wrong(tmp_path: Path) -> None:
    """Without any process: the disks are changed behind the model's back."""
    with quick_path(tmp_path) as base:
        soak = Soak(base, SEED)
        known = next(iter(soak.model.known.values()))
        path = Path(soak.log_dirs[known.disk]) / f"{known.topic}-{known.partition}"

        def wrong() -> list[str]:
            return rounds.judge(replace(soak.model), look(soak.log_dirs), is_recovered=True)

        assert wrong() == []
        log = path / "00000000000000000000.log"
        data, times = log.read_bytes(), (log.stat().st_atime_ns, log.stat().st_mtime_ns)
        log.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        os.utime(log, ns=times)
        assert [line.partition(":")[0] for line in wrong()] == ["lost"]
        log.write_bytes(data)
        assert "another" in "".join(wrong())  # the time of change
        os.utime(log, ns=times)
        assert wrong() == []
        path.rename(path.with_name("stolen"))
        assert any(line.startswith("lost: ") for line in wrong())
        path.with_name("stolen").rename(path)
        (path / "replica.json").write_bytes(b"half")
        assert [line.partition(":")[0] for line in wrong()] == ["stuck"]
        (path / "replica.json").unlink()
        (Path(soak.log_dirs[0]) / "stranger").write_bytes(b"touched")
        assert [line.partition(":")[0] for line in wrong()] == ["foreign"]
        soak.close()


def test_what_is_left_of_a_twin_is_taken_for_that_twin(tmp_path: Path) -> None:
    """Of a purge that was cut off no file is left that says whose it is: its disk and its name do."""
    with quick_path(tmp_path) as base:
        soak = Soak(base, SEED)
        one = next(iter(soak.model.known.values()))
        name = f"{one.id}_{one.partition}"
        twin = replace(one, token="replica-99", disk=(one.disk + 1) % 2, places=frozenset({"claimed"}), name=name)
        one.name = name
        soak.model.known[twin.key] = twin
        left = Path(f"{soak.log_dirs[twin.disk]}{WORK}/deleting/{name}.purging")
        left.mkdir()
        os.chown(left, UID, GID)
        assert rounds.judge(replace(soak.model), look(soak.log_dirs), is_recovered=True) == []
        left.rmdir()
        wrong = rounds.judge(replace(soak.model), look(soak.log_dirs), is_recovered=True)
        assert [line.partition(":")[0] for line in wrong] == ["lost"]
        soak.close()
