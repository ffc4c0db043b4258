"""A scrape, read by the parser of the library, and a daemon of which a test says all that is measured."""

from __future__ import annotations

from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from logdir.daemon.config import parse
from logdir.daemon.looks import Looks
from logdir.daemon.metrics.exposition import CONTENT_TYPE, text_of
from logdir.daemon.metrics.samples import Measured
from logdir.daemon.report.counters import Counters
from logdir.daemon.report.history import History
from logdir.daemon.report.status import StatusResult, blank_status
from logdir.errors import Problem
from tests.logdir.daemon.rig import Process, ask

GET: Final = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Scrape:
    """The values of one scrape."""

    def __init__(self, text: bytes) -> None:
        self.text = text.decode("utf-8")
        self.values: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in text_string_to_metric_families(self.text):
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                assert key not in self.values, f"twice: {key}"
                self.values[key] = sample.value

    def of(self, name: str, **labels: object) -> float | None:
        """Return one value by all its labels; ``None``: it is absent."""
        return self.values.get((name, frozenset((label, str(value)) for label, value in labels.items())))

    def all_of(self, name: str) -> dict[tuple[str, ...], float]:
        """Return every value of a metric by those of its labels, in the order of the labels' names."""
        found = {}
        for (known, labels), value in self.values.items():
            if known == name:
                found[tuple(text for _, text in sorted(labels))] = value
        return found

    def types(self) -> dict[str, str]:
        """Return the type of every metric that is named, with or without a value."""
        lines = [line.split() for line in self.text.splitlines() if line.startswith("# TYPE ")]
        assert len({name for _, _, name, _ in lines}) == len(lines)
        return {name: kind for _, _, name, kind in lines}


class Fake:
    """A daemon of which a test says all that is measured."""

    def __init__(
        self,
        status: StatusResult | None = None,
        *,
        counters: Counters | None = None,
        history: History | None = None,
        looks: Looks | None = None,
        reload_problems: tuple[Problem, ...] = (),
    ) -> None:
        self.config = parse(b"server.properties: s", "/etc/logdird/b1.yaml")
        self.version = "1.2.3"
        self.counters = counters or Counters()
        self.history = history or History("/nonexistent")
        self.looks = looks or Looks("/nonexistent", lambda look, gaps: None)
        self.reload_problems = reload_problems
        self._status = status or blank_status("b1", "1.2.3")

    def status(self) -> StatusResult:
        return self._status


def scrape_of(daemon: Measured) -> Scrape:
    return Scrape(text_of(daemon))


def scraped(one: Process) -> Scrape:
    """Scrape a running daemon over its socket."""
    head, _, body = ask(one.socket, GET).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    assert f"Content-Type: {CONTENT_TYPE}".encode() in head
    return Scrape(body)
