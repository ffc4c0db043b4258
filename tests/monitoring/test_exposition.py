"""The metrics that rules and dashboard name are those that a daemon shows, scraped or by its text file."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdir.daemon.config import DaemonConfig
from logdir.daemon.metrics.exposition import text_of, textfile_of
from logdir.daemon.report.history import History
from logdir.daemon.supervisor import Supervisor
from tests.monitoring.contract import OF_OTHERS, PROCESS, read_table, series_of
from tests.monitoring.exposition import Exposition, read_exposition
from tests.promql.syntax import Expr, selectors
from tests.promql.values import NAME, nameless
from tests.test_monitoring_dashboard import EXPRESSIONS
from tests.test_monitoring_rules import METRICS, RECORDED, RULES

IN_A_FILE = {f"logdird_{name}" for name in PROCESS}


@pytest.fixture
def supervisor(tmp_path: Path) -> Supervisor:
    """Return a daemon that has not looked at anything yet: it shows the type of every metric, and some values."""
    config = DaemonConfig(
        name="b1",
        file=str(tmp_path / "b1.yaml"),
        server_properties=str(tmp_path / "server.properties"),
        state_dir=str(tmp_path),
        socket=str(tmp_path / "b1.sock"),
    )
    return Supervisor(config, version="0.3.0", history=History(config.state_dir))


def named(exprs: tuple[Expr, ...]) -> set[str]:
    """Return the metrics of a daemon that expressions name."""
    names = {one.name for expr in exprs for one in selectors(expr)}
    return {name for name in names if name is not None} - RECORDED - OF_OTHERS.keys()


def test_every_metric_of_rules_and_dashboard_is_shown(supervisor: Supervisor) -> None:
    exprs = (*(rule.expr for rule in RULES), *EXPRESSIONS)
    scraped = read_exposition(text_of(supervisor).decode())
    in_a_file = read_exposition(textfile_of(supervisor).decode())
    assert named(exprs) - scraped.names - IN_A_FILE == set()
    assert named(exprs) - in_a_file.names - set(PROCESS) == set()


def test_what_is_shown_has_the_labels_of_the_table(supervisor: Supervisor) -> None:
    known = series_of(read_table(METRICS.read_text("utf-8")))
    scraped = read_exposition(text_of(supervisor).decode())
    in_a_file = read_exposition(textfile_of(supervisor).decode())
    assert len(scraped.samples) == len(in_a_file.samples) > 10
    assert labels_of_samples(scraped, known) == set()
    assert labels_of_samples(in_a_file, known) == set()
    assert all(dict(labels)["daemon"] == "b1" for labels in in_a_file.samples)


def labels_of_samples(shown: Exposition, known: dict[str, frozenset[str]]) -> set[str]:
    """Return the samples with a label that the table does not have; a label without a value is not seen here."""
    return {
        dict(labels)[NAME]
        for labels in shown.samples
        if not {name for name, _ in nameless(labels)} <= known[dict(labels)[NAME]]
    }
