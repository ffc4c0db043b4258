"""The baseline of ``fleet plan``: the same questions asked of the same snapshot, by DuckDB.

``python -m benchmarks.duckdb_plan SNAPSHOT DIR`` reads the snapshot's Parquet files and writes ``conflicts/`` and
``steps/``. It answers what takes the time (every grouping over all rows, and the ordered steps), not the whole of
design §7.4; its plan is not for use.

Spec: design §10 "fleet plan".
"""

from __future__ import annotations

import os
import sys

import duckdb

_GROUPS = {
    "one-name-two-ids": ("cluster, topic", "count(distinct topic_id) > 1"),
    "one-id-two-names": ("cluster, topic_id", "topic_id is not null and count(distinct topic) > 1"),
    "replicas-differ-in-id": ("cluster, topic, partition", "count(distinct topic_id) > 1"),
    "partition-twice-on-broker": ("cluster, broker, topic, partition", "count(*) > 1"),
    "id-in-two-clusters": ("topic_id", "topic_id is not null and count(distinct cluster) > 1"),
}
_HOLDERS = {
    "missing-id": "kind = 'live' and topic_id is null and not list_contains(problems, 'partition-metadata-broken')",
    "leftover": "kind in ('future', 'delete', 'stray', 'staged', 'purging', 'incoming')",
    "unknown-entry": "kind = 'unknown' and not list_contains(problems, 'plain-file')",
    "metadata-file-broken": "list_contains(problems, 'partition-metadata-broken')",
}
_SHOWN = "cluster, broker, node_id, log_dir, name, topic, topic_id, partition"


def plan(snapshot: str, output: str, threads: int) -> int:
    """Write both; return the number of steps."""
    os.makedirs(output)
    db = duckdb.connect(config={"threads": threads})
    db.execute(
        f"create view rows as select * from read_parquet('{snapshot}/rows/**/*.parquet')"
        ";create table disks as select source, node_id, log_dir from rows where kind = 'disk'"
        ";create view seen as select r.cluster, r.broker, r.kind, r.name, r.topic, r.topic_id, r.partition, "
        "r.log_bytes, r.problems, d.node_id, d.log_dir from rows r join disks d using (source) where r.kind <> 'disk'"
        ";create view live as select * from seen where kind = 'live'"
    )
    found = [
        f"select '{slug}' as slug, {', '.join(f'l.{c.strip()}' for c in _SHOWN.split(','))} from live l "
        f"join (select {keys} from live group by {keys} having {having}) using ({keys})"
        for slug, (keys, having) in _GROUPS.items()
    ] + [f"select '{slug}' as slug, {_SHOWN} from seen where {where}" for slug, where in _HOLDERS.items()]
    db.execute(f"create table conflicts as {' union all '.join(found)}")
    db.execute(f"copy conflicts to '{output}/conflicts.parquet'")
    db.execute(
        "create table blocked as select distinct broker from conflicts "
        "where slug <> 'missing-id' and not (slug = 'leftover' and name like '%-delete')"
        ";create table given as select cluster, topic, "
        "coalesce(max(topic_id), substr(to_base64(sha256(topic)::blob), 1, 22)) as given_id "
        "from live group by cluster, topic having count(topic_id) < count(*)"
    )
    db.execute(
        "copy (select cluster, node_id, row_number() over (partition by broker order by log_dir, name) as step, "
        "log_dir, name, substr(id, 1, 2) || '/' || id || '_' || partition as target, topic, "
        "id as topic_id, partition, id_from, log_bytes from (select l.*, coalesce(l.topic_id, g.given_id) as id, "
        "if(l.topic_id is null, 'given', 'own') as id_from from live l left join given g using (cluster, topic)) "
        "where broker not in (select broker from blocked) order by cluster, broker, step) "
        f"to '{output}/steps.parquet'"
    )
    (steps,) = db.execute(f"select count(*) from '{output}/steps.parquet'").fetchone() or (0,)
    return int(steps)


if __name__ == "__main__":
    print(plan(sys.argv[1], sys.argv[2], len(os.sched_getaffinity(0))), "steps")
