"""The metrics as text: for a scrape, and for a file that another exporter of the host reads.

The library comes with a web server, a client and its own default metrics; only the format and the registry are used
here. It is loaded with the first scrape, or the first writing of the file, and not before: it takes 1 to 4 MB and
some 20 ms, and the daemons of a host without Prometheus are never scraped.

Not here: the values (``samples``), who asks (``daemon.socket``, ``textfile``).

Spec: docs/metrics.md; the text format 0.0.4 of Prometheus; libraries §0 "metrics".
"""

from __future__ import annotations

from typing import Final

from logdir.daemon.metrics.samples import Measured

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of the text."""


def text_of(daemon: Measured) -> bytes:
    """Return every metric of a daemon, and those of its process; from memory, and from ``/proc/self``."""
    from logdir.daemon.metrics.collector import PROCESS, DaemonCollector, text_of_all

    return text_of_all(DaemonCollector(daemon), PROCESS)


def textfile_of(daemon: Measured) -> bytes:
    """Return the metrics as a textfile of the node exporter needs them.

    That exporter puts all files together with its own metrics, and fails as a whole where two of them have the same
    name and labels. So each value has the label ``daemon``, because several daemons may run on a host, and the metrics
    of the process are called ``logdird_process_*``, because the exporter has a process, too.
    """
    from logdir.daemon.metrics.collector import NAMED_PROCESS, DaemonCollector, Labelled, text_of_all

    labels = {"daemon": daemon.config.name}
    return text_of_all(Labelled(DaemonCollector(daemon), labels), Labelled(NAMED_PROCESS, labels))
