"""The series of a daemon that is well, a sample each minute; and of one that is not, by what differs.

Every metric of docs/metrics.md is here, but for those that are there only if something was wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tests.promql.notation import add, series_labels, values_of
from tests.promql.store import Store
from tests.promql.values import NAME, Labels, labels_of, replaced, value_of

HERE = (("job", "logdird"), ("instance", "b1:9404"))
LOG_DIRS = ("/d1", "/d2")
STATES = ("online", "read-only", "suspect", "quarantined", "offline")
KINDS = ("live", "future", "delete", "stray", "staged", "purging", "incoming", "metadata")
BOUNDS = (
    "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "+Inf",
)  # fmt: skip
_PLAIN = """
    up                                              1
    node_textfile_mtime_seconds{file="/t/logdird-b1.prom"}  now
    process_virtual_memory_bytes                    3e8
    process_resident_memory_bytes                   4e7
    process_start_time_seconds                      1000
    process_cpu_seconds_total                       0+1
    process_open_fds                                40
    process_max_fds                                 1024
    logdird_info{daemon="b1", version="0.3.0", node_id="1", cluster_id="c"}  1
    logdird_broker_state                            3
    logdird_state_since_timestamp_seconds           1000
    logdird_broker_running                          1
    logdird_metadata_lag                            12
    logdird_offline_log_directory_count             0
    logdird_captured_total                          5
    logdird_missed_total                            0
    logdird_purged_total                            2
    logdird_purged_bytes_total                      2e9
    logdird_purged_early_total                      0
    logdird_gaps_total                              1
    logdird_last_look_timestamp_seconds             now
    logdird_errors_total{log_dir="", slug="config-error"}  3
    logdird_waiting{slug="stale-disk"}              0
    logdird_failed_replicas                         0
    logdird_requests_queued                         1
    logdird_requests_total{use_case="describe", exit="0"}  0+1
    logdird_documents_total{outcome="done"}         0+1
    logdird_documents_total{outcome="refused"}      0
    logdird_history_dropped_total                   0
    logdird_config_reload_failed                    0
"""
_OF_LOG_DIR = """
    logdird_log_dir_free_bytes                      6e11
    logdird_log_dir_size_bytes                      1e12
    logdird_log_dir_free_inodes                     1e7
    logdird_log_dir_read_timestamp_seconds          now
    logdird_log_dir_watched                         1
    logdird_undo_off                                0
    logdird_staged_replicas                         3
    logdird_staged_bytes                            1e10
    logdird_held_replicas                           1
    logdird_purging_replicas                        0
    logdird_partial_captures                        0
    logdird_next_purge_timestamp_seconds            14400+60
    logdird_look_seconds_sum                        0+0.03
    logdird_look_seconds_count                      0+6
"""
SOMETIMES = frozenset({"logdird_last_gap_end_timestamp_seconds"})
"""Metrics that a daemon without trouble does not have."""


def store_of(minutes: int, differing: str = "") -> Store:
    """Return the series of a daemon that is well.

    Args:
        minutes: How many samples each has after the first, unless it is given as differing.
        differing: Series that are otherwise, or that come on top: one a line, as promtool writes them. The job and the
            instance are those of the daemon unless they are named.
    """
    series = {labels_here(name): values_of(_through(values, minutes)) for name, values in _all()}
    for line in filter(None, map(str.strip, differing.splitlines())):
        name, _, values = line.partition("  ")
        series[labels_here(name)] = values_of(values)
    return _stored(series)


def store_of_files(minutes: int, differing: str = "") -> Store:
    """Return the series of a host with two daemons, b1 and b2, whose text files its node exporter shows.

    Args:
        minutes: How many samples each has after the first.
        differing: Series that are otherwise, as in ``store_of``; those of a daemon name it.
    """
    series = {
        _of_file(series_labels(name), daemon): values_of(_through(values, minutes))
        for name, values in _all()
        for daemon in ("b1", "b2")
    }
    for line in filter(None, map(str.strip, differing.splitlines())):
        name, _, values = line.partition("  ")
        labels = series_labels(name)
        series[_of_file(labels, value_of(labels, "daemon"))] = values_of(values)
    return _stored(series)


def _stored(series: Mapping[Labels, Iterable[float | str | None]]) -> Store:
    store = Store()
    for labels, values in series.items():
        add(store, labels, values)
    return store


def _of_file(labels: Labels, daemon: str) -> Labels:
    """Return the labels of a series as a node exporter shows it."""
    name, file = value_of(labels, NAME), value_of(labels, "file")
    labels = replaced(replaced(labels, "job", "node"), "instance", "b1:9100")
    if file:
        return replaced(labels, "file", file.replace("b1", daemon))
    if name.startswith("process_"):
        labels = replaced(labels, NAME, f"logdird_{name}")
    return labels if name == "up" else replaced(labels, "daemon", daemon)


def labels_here(text: str) -> Labels:
    """Return the labels of a series, with the job and the instance of the daemon if it names none."""
    labels = series_labels(text)
    return labels | labels_of((name, value) for name, value in HERE if not value_of(labels, name))


def _all() -> Iterator[tuple[str, str]]:
    yield from _lines(_PLAIN, "")
    for log_dir in LOG_DIRS:
        own = f'log_dir="{log_dir}"'
        yield from _lines(_OF_LOG_DIR, f"{{{own}}}")
        for state in STATES:
            yield f'logdird_log_dir_state{{{own}, state="{state}"}}', str(int(state == "online"))
        for kind in KINDS:
            yield f'logdird_log_dir_bytes{{{own}, kind="{kind}"}}', "1e9"
            yield f'logdird_log_dir_entries{{{own}, kind="{kind}"}}', "10"
        for bound in BOUNDS:
            # A look takes between 2.5 and five milliseconds.
            yield f'logdird_look_seconds_bucket{{{own}, le="{bound}"}}', "0" if float(bound) < 0.005 else "0+6"


def _lines(text: str, labels: str) -> Iterator[tuple[str, str]]:
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, values = line.partition("  ")
        yield name + labels, values.strip()


def _through(value: str, minutes: int) -> str:
    """Return the notation of a series that goes on; ``now`` is the time of each sample."""
    return f"{'0+60' if value == 'now' else value}x{minutes}"
