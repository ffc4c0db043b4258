"""Metadata logs and snapshots that stock brokers wrote under a random workload, as the stock decoder prints them.

Spec: KIP-631, "kafka-dump-log.sh"; kafka-formats §7-§9.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Final

import pytest

from logdir.cluster.metadata_file import opened
from logdir.metadata.dump import Dump, StockForm
from tests.kafka.client import Client
from tests.kafka.fetch import cache_dir
from tests.kafka.rig import CLEAN_EXIT, Broker, Rig, await_true
from tests.kafka.workload import EVERYTHING, Workload
from tests.proof.metadata_claims import STOCK_DECODER
from tests.proof.plugin import Recorder

pytestmark = pytest.mark.kafka

SEED: Final = 5
FORMS: Final = {"4.3.1": StockForm.OF_4_3, "3.3.2": StockForm.OF_3_6, "3.7.2": StockForm.OF_3_7}
ASKED: Final = tuple(FORMS)[: STOCK_DECODER.count("releases")]
_PROPERTIES: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    # A hundred changes are enough for one.
    "metadata.log.max.record.bytes.between.snapshots": "5000",
}


def stock_lines(broker: Broker, path: Path, *options: str) -> list[str]:
    """Return what the stock decoder of a broker's own release prints of a file, behind its head."""
    package = "kafka.tools" if broker.version.startswith("3.") else "org.apache.kafka.tools"
    words = ("--cluster-metadata-decoder", "--files", str(path), *options)
    head, *lines = broker.tool(f"{package}.DumpLogSegments", *words).splitlines()
    assert head == f"Dumping {path}"
    return lines


def our_lines(broker: Broker, path: Path, *, skip_record_metadata: bool) -> list[str]:
    """Return what we print of it."""
    with opened(str(path)) as file:
        dump = Dump(file, form=FORMS[broker.version])
        lines = list(dump.lines(skip_record_metadata=skip_record_metadata))
    assert dump.problems == []
    return lines


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", ASKED)
def test_what_a_broker_logged_is_dumped_as_its_own_decoder_does(
    version: str, jars: Callable[[str], Path], kafka_root: Path, record_proof: Recorder
) -> None:
    root = kafka_root / f"{version}-{os.urandom(4).hex()}"
    newest = jars("4.3.1")
    with Rig(version=version, libs=jars(version), client_libs=newest, cache=cache_dir(os.environ), root=root) as rig:
        broker = rig.add_broker(log_dirs=2, properties=_PROPERTIES)
        broker.start()
        done = run(rig.client, version)
        log = broker.log_dirs[0] / "__cluster_metadata-0"
        await_true("there is a snapshot", lambda: any(log.glob("0*-*.checkpoint")), timeout_seconds=60)
        assert broker.stop() == CLEAN_EXIT
        files = sorted([*log.glob("*.log"), *log.glob("*.checkpoint")])
        lines = 0
        for path in files:
            for is_bare in (False, True):
                theirs = stock_lines(broker, path, *(["--skip-record-metadata"] if is_bare else []))
                ours = our_lines(broker, path, skip_record_metadata=is_bare)
                differ = [(o, t) for o, t in zip_longest(ours, theirs) if o != t]
                assert differ == [], f"{path.name}: {len(differ)} lines, the first: {differ[0]}"
                lines += len(ours)
    assert len(files) >= 2, files
    assert lines > done.granted
    counts = {"operations": done.granted, "releases": 1, "files": len(files), "lines": lines}
    record_proof(STOCK_DECODER, counts, seeds=SEED)


def run(client: Client, version: str) -> Workload:
    """Make as many changes as the claim asks for of one release."""
    weights = dict(EVERYTHING)
    del weights["cancel"]  # of one node a reassignment is over at once
    if version.startswith("3.3."):
        del weights["scram"]  # KRaft learned it with 3.5
    work = Workload(client, seed=f"{SEED} {version}", node_ids=(1,), weights=weights)
    wanted = STOCK_DECODER.count("operations") // len(ASKED)
    for _ in range(4 * wanted):
        if work.granted >= wanted:
            break
        work.step()
    assert work.granted == wanted, work.refused
    assert work.asked.keys() == weights.keys(), (work.asked, work.refused)
    return work
