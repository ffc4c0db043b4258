"""The use cases that only read, by the name of their command, and what each is asked over the control socket.

A question never names the broker, an output or another place to write: the daemon adds its own broker.

Not here: how they are answered (``answering``), what each does (``logdir.service``).

Spec: design §5 "A use case", §6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Final, NamedTuple, TypeAlias

from logdir.decide.refusal import INTERNAL
from logdir.errors import ConfigError
from logdir.service.cluster.source import OWN_LOG, SourceRequest, parse_uri

_OWN: Final = SourceRequest()
"""The broker's own metadata log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedLsQuestion:
    """What ``staged ls`` is asked."""

    selector: str | None = None
    """The staged replicas; ``None``: all."""
    source: SourceRequest = _OWN
    """The source of cluster metadata."""
    are_ends_wanted: bool = True
    """Whether to read the offset after the last record of each replica (``log_end``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StraysQuestion:
    """What ``strays`` is asked."""

    selector: str | None = None
    """The strays; ``None``: all."""
    source: SourceRequest = _OWN
    """The source of cluster metadata."""
    protected: tuple[str, ...] = (INTERNAL,)
    """Globs of topics that must not be changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuestion:
    """What ``describe`` is asked."""

    selector: str | None = None
    """The partitions; ``None``: all."""
    source: SourceRequest | None = None
    """The source of cluster metadata; ``None``: the broker's own metadata log, if it has one that can be used."""
    disks: tuple[str, ...] | None = None
    """Only what lies on these log dirs; ``None``: on all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryQuestion:
    """What ``inventory`` is asked."""

    is_exact: bool = False
    """Whether to read the size of every file, not only of segments."""
    are_entries_wanted: bool = False
    """Whether to list every entry, not only to count them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutStatusQuestion:
    """What ``layout status`` is asked: nothing but that."""


Question: TypeAlias = StagedLsQuestion | StraysQuestion | DescribeQuestion | InventoryQuestion | LayoutStatusQuestion


class Reading(NamedTuple):
    """One use case that only reads."""

    name: str
    """Its name, as that of its command."""
    request: type
    """The type of its question."""
    result_at: str
    """The type of its result, as ``module:class``."""

    @property
    def result(self) -> type:
        """The type of its result; its module is imported when it is asked for."""
        module, _, name = self.result_at.partition(":")
        found: type = getattr(import_module(module), name)
        return found


_HERE: Final = "logdir.service"
STAGED_LS: Final = Reading("staged ls", StagedLsQuestion, f"{_HERE}.staged_listing:StagedListing")
STRAYS: Final = Reading("strays", StraysQuestion, f"{_HERE}.strays:StraysResult")
DESCRIBE: Final = Reading("describe", DescribeQuestion, f"{_HERE}.describe:DescribeResult")
INVENTORY: Final = Reading("inventory", InventoryQuestion, f"{_HERE}.inventory:InventoryResult")
LAYOUT_STATUS: Final = Reading("layout status", LayoutStatusQuestion, f"{_HERE}.layout_status:LayoutStatusResult")
READINGS: Final[Mapping[str, Reading]] = {
    one.name: one for one in (STAGED_LS, STRAYS, DESCRIBE, INVENTORY, LAYOUT_STATUS)
}
"""All of them, by name."""


def source_of(question: Question) -> SourceRequest | None:
    """Return the source that a question names; ``None``: it names none."""
    match question:
        case StagedLsQuestion() | StraysQuestion() | DescribeQuestion():
            return question.source
        case InventoryQuestion() | LayoutStatusQuestion():
            return None


def is_of_own_log(question: Question) -> bool:
    """Whether a question needs no file but those of the broker: it names no source beside the broker's own log.

    Any other source is a file that the user of the daemon may read, and whoever asks perhaps may not.
    """
    source = source_of(question)
    if source is None:
        return True
    try:
        return parse_uri(source.uri) == OWN_LOG
    except ConfigError:
        return False
