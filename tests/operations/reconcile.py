"""Reconciling over two disks: counted, staged, held, an id given, and only then marked as followed.

The order is that of ``logdirctl reconcile --apply``; what follows from an image is decided elsewhere.

Spec: design §2 laws 1, 3, §3.3, §4; attacks A38, A43.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from logdir.disk.record import controller, staging_limit
from logdir.disk.replica.give_id import GiveItem, give_id
from logdir.disk.replica.outcome import Result
from logdir.disk.replica.staging import StageItem, stage
from logdir.formats.own import controller_file, staging_limit_file
from logdir.formats.own.controller_file import MetadataMark
from logdir.formats.own.staging_limit_file import Count
from logdir.ids import TopicId
from tests.builders import CLUSTER, TOPIC_ID
from tests.crash import oracle
from tests.crash.enumerate import State
from tests.crash.model import ModelHost
from tests.crash.recording import Acks, record
from tests.crash.starts import ONE, A, B, C, Part, Sites, marker_for, start
from tests.crash.steps import Steps, course_of, recover_all, replica_of
from tests.crash.tree import World
from tests.operations.case import Case, readable, settled
from tests.operations.operation import Make, Operation

D = Part(0, "d", 3)
_LOG_DIRS = ("/d0/kafka", "/d1/kafka")
_COUNTED = (Count(instant_ms=5, partitions=2, topics=2),)
_BEGUN = controller_file.begin(CLUSTER, 1)
_FOLLOWED = replace(_BEGUN, metadata=MetadataMark(epoch=3, offset=70))
_SAID = ("staging limit reached 1", "id reached 1", "controller reached 1")
_ID = f"version: 0\ntopic_id: {TOPIC_ID}".encode()


def _start() -> ModelHost:
    """Return two log dirs: of the first one replica is staged, and one has no id."""
    host = start(A, B, C, D, files=ONE)
    with Sites(host) as open_dirs:
        for log_dir in _LOG_DIRS:
            controller.begin(open_dirs.at(log_dir))
            staging_limit.begin(open_dirs.at(log_dir))
        item = StageItem(path=B.path, marker=marker_for(open_dirs.of(B), B))
        assert stage(open_dirs.of(B), [item])[0].result is Result.DONE
    return settled(host)


def _reconcile(steps: Steps) -> None:
    roots = [steps.open_dirs.at(log_dir) for log_dir in _LOG_DIRS]
    with suppress(OSError):
        staging_limit.write_record(roots, _COUNTED)
        steps.acks.ack(_SAID[0])
        steps.stage(A, C)
        steps.hold(B)
        outcome = give_id(steps.open_dirs.of(D), GiveItem(path=D.path, topic_id=TopicId.parse(TOPIC_ID)))
        if outcome.result is Result.DONE:
            steps.acks.ack(_SAID[1])
        if len(steps.reached) == 3 and outcome.result is Result.DONE:
            controller.write_record(roots, _FOLLOWED)
            steps.acks.ack(_SAID[2])


def _case(name: str) -> Case:
    first = _start()
    files: dict[str, tuple[bytes | None, bytes | None, str]] = {
        f"{D.log_dir}/{D.path}/partition.metadata": (None, _ID, _SAID[1])
    }
    counted, followed = staging_limit_file.render(_COUNTED), controller_file.render(_FOLLOWED)
    for log_dir in _LOG_DIRS:
        files[f"{log_dir}.logdird/{staging_limit_file.FILE_NAME}"] = (staging_limit_file.render(()), counted, _SAID[0])
        begun = controller_file.render(_BEGUN)
        files[f"{log_dir}.logdird/{controller_file.FILE_NAME}"] = (begun, followed, _SAID[2])
    replicas = (
        replica_of(A, "live", "staged"),
        replica_of(B, "staged", "held", is_staged=True),
        replica_of(C, "live", "staged"),
    )
    one = course_of(name, first, _reconcile, *replicas, files=files)._replace(has_way_back=False)
    judge = one.judge
    said = record(first.world(), one.run).acks.said

    def judged(before: World, state: State, acks: Acks) -> list[str]:
        wrong = judge(before, state, acks)
        found = state.crashed.files()
        there = [log_dir for log_dir in _LOG_DIRS if log_dir.rpartition("/")[0] in readable(state)]
        if any(f"{part.log_dir}.logdird/deleting/{part.place}/{oracle.MARKER}" in found for part in (A, C)):
            uncounted = [at for at in there if found[f"{at}.logdird/{staging_limit_file.FILE_NAME}"] != counted]
            wrong += [f"uncounted: staged, and {at} does not count it" for at in uncounted]
        if any(found[f"{at}.logdird/{controller_file.FILE_NAME}"] == followed for at in there):
            # The next look at the cluster passes over what is marked: all of it has to be there.
            done = Acks(line for line in said if line != _SAID[2])
            wrong += [f"marked as followed, but {line}" for line in judge(before, state, done)]
        return wrong

    return Case(name, first, one.run, recover_all, judged, reaches=one.reaches | {_SAID[2]})


_CASES: dict[str, Make] = {"reconcile": _case}
OPERATIONS = (Operation(name="reconcile", family="reconcile", cases=_CASES, on_kernels=()),)
"""The descriptor."""
