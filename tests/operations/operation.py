"""What a disk operation is to every rig: one descriptor, read by all of them.

An ``Operation`` names its cases: each has a start, does something through ``logdir.disk`` and says what must hold, at
its end and wherever it is cut off, and what recovers it where that is not what every start does. Beside them stand what
only one rig asks for: which syncs must be missed if they are left out, and which need not be; how a random worker draws
it; the bugs that are seeded into it.

Not here: which operations there are (``registry``), what cases are put together from (``case``, ``tests.crash.steps``).

Spec: reliability §4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tests.crash.soak.hands import Hands
from tests.crash.soak.looks import Look
from tests.crash.soak.seen import Seen
from tests.operations import functions
from tests.operations.case import Case
from tests.operations.seeded import Seeded
from tests.operations.source import Spot

REPLICA = "replica, file"
"""The family of operations on one replica or one small file, which share a recovery and an oracle."""


Make = Callable[[str], Case]
"""Makes a case of a name: only when it is asked for, since it may run another operation to have its start."""


class Trait(Enum):
    """What some cases of an operation are, and a rig has to know."""

    RAW = "begins with bare calls of a process that was stopped, which nobody makes again, be the disk full"
    PREPARED = "begins with a call of somebody else, and goes on where that fails"
    AT_WORK = "starts amid something, so that recovery of its start has work to do"
    GOES_ON = "goes on with everything else where one call fails"
    NEEDS_NO_ROOM = "makes nothing, so that a full disk does not keep it waiting"
    TAKEN_UP = "is killed before a call, and taken up by another process of the same boot"
    ALIKE = "makes the calls of another case, and is cut off, judged or raced in another way"
    FIRST = "takes longest, and is begun first where several run side by side"
    LONG = "has so many states that a taste leaves it out"
    LONG_CALLS = "makes so many calls that a taste does not fail each of them"
    LONG_SYNCS = "makes so many syncs that a taste does not fail each of them"
    LONG_ERRNOS = "makes so many calls that a taste does not fail each of them in every way"
    LONG_RECOVERY = "has a recovery that is all of it again, and is not cut off as well"
    REORDERED = "is done again by a removal, which rests on the order of entries that ext4, XFS and btrfs keep"
    MOVES_ON = "tries another place where a call fails"
    RESERVE = "makes the reserve or takes it away, and so needs a disk that is not full"
    OUTSIDE = "writes outside of all log dirs, and has errors of its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncs:
    """Which cases must miss a sync, left out by itself."""

    of: str
    """A function, as it is imported, or a whole module."""
    cases: tuple[str, ...]
    """At least one of them must."""
    depth: int = 1
    """2: their recovery is cut off as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needless:
    """A sync that no model misses, and why it is kept."""

    function: str
    call: Spot
    because: str
    """With the file systems on which it is so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file of ours that is written whole: which syncs of ``small_file`` it must miss by itself, and where."""

    cases: tuple[str, ...]
    misses: frozenset[tuple[str, int]] = frozenset({(functions.REPLACE_FILE, 1), (functions.REPLACE_FILE, 2)})
    """Function, and which of its syncs: others of the same directory follow where one is not missed."""


class When(Enum):
    """In which state of a broker something may be drawn."""

    ALWAYS = "always"
    NAMES = "in the topic-name layout, and no start is blocked"
    BLOCKED = "in the topic-name layout, and every start is blocked"
    IDS = "in the topic-id layout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """How a random worker does an operation: in the soak of killed processes, and under the swaps."""

    kind: str
    """What the worker says it begins and ends; the soak's judge knows it by that."""
    do: Callable[[Hands, Seen], bool]
    """Do it on something drawn from what was seen; whether there was anything to do it on."""
    when: When = When.ALWAYS
    share: float = 1.0
    """How often it is thought of, unless it is preferred: what takes long is drawn less."""
    is_rare: bool = False
    """Whether it can be done so seldom that it is always tried first."""
    home: Callable[[Hands, Seen], bool] | None = None
    """What is left of it to be taken back at the end; done until there is nothing."""
    leaves: frozenset[str] = frozenset()
    """Files that may lie in a log dir because of it: their paths, those of its work root below ``work/``."""
    holds: Callable[[Look, Mapping[str, Any] | None, Sequence[Mapping[str, Any]]], Iterable[str]] | None = None
    """Says what is wrong with what was found, told what the last one that ended had said of itself, and those begun
    since; ``None``: the soak's own model knows the kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation on a disk."""

    name: str
    cases: Mapping[str, Make]
    family: str = REPLICA
    """Under which its states are counted."""
    traits: Mapping[Trait, tuple[str, ...]] = field(default_factory=dict)
    """Trait to the names of cases that have it."""
    on_kernels: tuple[str, ...] | None = None
    """The cases that run on real kernels as well; ``None``: all of them."""
    syncs: tuple[Syncs, ...] = ()
    needless: tuple[Needless, ...] = ()
    files: Mapping[str, Written] = field(default_factory=dict)
    """Files of ours that it writes whole, by their names."""
    draws: tuple[Draw, ...] = ()
    seeded: tuple[Seeded, ...] = ()

    def __post_init__(self) -> None:
        named = {name for names in self.traits.values() for name in names} | set(self.on_kernels or ())
        if unknown := sorted(named - set(self.cases)):
            raise ValueError(f"{self.name} has no case {unknown[0]!r}")
