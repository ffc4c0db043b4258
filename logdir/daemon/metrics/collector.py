"""The values of the daemon in the classes of the metrics library.

The only module that imports it, and imported by ``exposition`` with the first scrape. Each scrape has a registry of its
own: there is nothing to keep in one, and the global one of the library, with its default metrics, is never used.

Spec: docs/metrics.md; libraries §0 "metrics".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from logdir.daemon.metrics.families import FAMILIES, Family, Type
from logdir.daemon.metrics.samples import Distribution, Measured, samples_of

PROCESS: Final = ProcessCollector(registry=None)
"""Of this process: resident memory, CPU seconds, start time, open files."""
NAMED_PROCESS: Final = ProcessCollector(namespace="logdird", registry=None)
"""The same under names that are no other process's."""


class DaemonCollector(Collector):
    """Collects the metrics of one daemon."""

    def __init__(self, daemon: Measured) -> None:
        """Take the daemon; nothing is asked of it yet."""
        self._daemon = daemon

    def collect(self) -> Iterable[Metric]:
        """Return every family, those without a value, too."""
        found = {family.name: _metric_of(family) for family in FAMILIES}
        for one in samples_of(self._daemon):
            metric = found[one.family.name]
            if isinstance(one, Distribution):
                assert isinstance(metric, HistogramMetricFamily)
                buckets = [("+Inf" if math.isinf(bound) else str(bound), float(count)) for bound, count in one.buckets]
                metric.add_metric(one.labels, buckets, one.sum_s)
            else:
                assert isinstance(metric, GaugeMetricFamily | CounterMetricFamily)
                metric.add_metric(one.labels, one.value)
        return found.values()


class Labelled(Collector):
    """Collects what another collector does, with labels beside its own."""

    def __init__(self, collector: Collector, labels: Mapping[str, str]) -> None:
        """Take the collector and the labels."""
        self._collector, self._labels = collector, labels

    def collect(self) -> Iterable[Metric]:
        """Return what the collector returns."""
        for metric in self._collector.collect():
            metric.samples = [one._replace(labels={**self._labels, **one.labels}) for one in metric.samples]
            yield metric


def text_of_all(*collectors: Collector) -> bytes:
    """Return what collectors collect, in the text format."""
    registry = CollectorRegistry()
    for one in collectors:
        registry.register(one)
    return generate_latest(registry)


def _metric_of(family: Family) -> Metric:
    match family.type:
        case Type.GAUGE:
            return GaugeMetricFamily(family.name, family.help, labels=family.labels)
        case Type.COUNTER:
            return CounterMetricFamily(family.name, family.help, labels=family.labels)
        case Type.HISTOGRAM:
            return HistogramMetricFamily(family.name, family.help, labels=family.labels)
