"""What of a recorded run is still there after a crash: the persistence models, one file system at a time.

A run leaves edits and syncs (``tree.Edit``, ``tree.Sync``). What survives is a set of edits, of some of which only half
the data arrived: a :class:`Loss`, two bit masks over the edits.

- K (kill): all of them; also a call of several steps cut between them.
- J (one journal): any prefix not shorter than the last sync of something *dirty*; data of files not synced: none, half
  or all, each file for itself.
- B (log tree): any prefix, and besides what touches an inode that was synced, with all that needs to exist for it.
- P (worst POSIX with atomic rename): any subset in which nothing lacks what it needs; synced directories keep their
  entries, synced files their content. An entry of a directory that is itself lost is lost too.
- F (after a failed sync): as J; what it was to make durable may be lost for ever, whatever syncs come after.

Where there are more sets than ``LIMIT``, the extremes and a seeded sample are taken, and ``is_sampled`` says so.

Not here: several disks, crash points, acknowledgements, D (``recording``).

Spec: reliability §4.1 (held against its tables by ``test_persistence``), §4.4.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tests.crash.filesystem import closure
from tests.crash.tree import Edit, Log, Node, Sync, Volume, bits, step, tree_digest, union

LIMIT = 1 << 10
"""So many sets of one disk at one crash point are all taken; of more, a sample."""
_SEED = 516


class Loss(NamedTuple):
    """What survives of one disk."""

    mask: int
    """The edits that do, as bits."""
    halves: int = 0
    """Of those, the ones with half their data."""

    def render(self) -> str:
        """Return it as text."""
        return f"{self.mask:x}.{self.halves:x}"

    @classmethod
    def parse(cls, text: str) -> Loss:
        """Read what ``render`` wrote.

        >>> Loss.parse(Loss(31, 4).render())
        Loss(mask=31, halves=4)
        """
        mask, halves = text.split(".")
        return cls(int(mask, 16), int(halves, 16))


class DiskLog:
    """Everything a run did to one disk, and what may survive of it."""

    def __init__(self, volume: Volume) -> None:
        self.volume = volume
        log: Log = volume.log
        self.edits: tuple[Edit, ...] = log.edits
        self.syncs: tuple[Sync, ...] = log.syncs
        self.is_sampled = False
        self._initial: Mapping[int, Node] = {**log.base, **log.births}
        self._born = frozenset(log.births)
        # Masks of edits by inode: all that touch it, its own entries, its own owner, time and content, its names.
        self._chains: dict[int, int] = {}
        self._entries: dict[int, int] = {}
        self._own: dict[int, int] = {}
        self._names: dict[int, int] = {}
        self._data = self._slots = 0
        for number, edit in enumerate(self.edits):
            bit = 1 << number
            for inode in edit.touches:
                self._chains[inode] = self._chains.get(inode, 0) | bit
            if edit.inode:
                self._own[edit.inode] = self._own.get(edit.inode, 0) | bit
            for parent, _, child in edit.slots:
                self._slots |= bit
                self._entries[parent] = self._entries.get(parent, 0) | bit
                self._names[child] = self._names.get(child, 0) | bit
            if edit.data is not None:
                self._data |= bit
        self._nodes: dict[tuple[int, int, int], Node] = {}
        self._digests: dict[Loss, int] = {}

    # Building.

    def _node(self, inode: int, mask: int, halves: int) -> Node:
        node = self._initial[inode]
        for number in bits(mask):
            node = step(node, self.edits[number], bool(halves >> number & 1))
        return node

    def build(self, loss: Loss) -> dict[int, Node]:
        """Return all inodes as they are when this survived, also those without a name."""
        nodes = dict(self._initial)
        cache = self._nodes
        for inode, chain in self._chains.items():
            mask = loss.mask & chain
            if mask:
                key = (inode, mask, loss.halves & chain)
                node = cache.get(key)
                if node is None:
                    node = cache[key] = self._node(*key)
                nodes[inode] = node
        return nodes

    def digest(self, loss: Loss) -> int:
        """Return the digest of the tree when this survived."""
        found = self._digests.get(loss)
        if found is None:
            found = self._digests[loss] = tree_digest(self.build(loss), self.volume.root)
        return found

    def durable(self, loss: Loss) -> Volume:
        """Return the disk after a power cut in which this survived."""
        nodes = self.build(loss)
        reached = {}
        pending = [self.volume.root]
        while pending:
            node = nodes[pending.pop()]
            reached[node.inode] = node
            pending += node.entries.values()
        return self.volume._replace(nodes=reached, log=Log(reached, {}))

    def running(self, loss: Loss, syncs: int) -> Volume:
        """Return the disk after a kill: all of it is seen, what was pending still is."""
        edits = tuple(
            edit._replace(data=edit.data[: len(edit.data) // 2])
            if edit.data is not None and loss.halves >> number & 1
            else edit
            for number, edit in enumerate(self.edits[: loss.mask.bit_length()])
        )
        log = self.volume.log._replace(edits=edits, syncs=self.syncs[:syncs])
        return self.volume._replace(nodes=self.build(loss), log=log)

    # The models.

    def survivors(self, model: str, edits: int, syncs: int) -> tuple[Loss, ...]:
        """Return what may survive a crash, without repetition.

        Args:
            model: ``K``, ``J``, ``B``, ``P`` or ``F``.
            edits: How many edits there were.
            syncs: How many syncs there were.
        """
        if model == "K":
            return (Loss((1 << edits) - 1),)
        find = {"J": self._journal, "B": self._log_tree, "P": self._subsets, "F": self._failed}[model]
        return tuple(dict.fromkeys(find(edits, syncs, random.Random(f"{_SEED} {model} {edits} {syncs}"))))

    def _failures(self, syncs: int) -> Iterator[tuple[Sync, int, int]]:
        """Yield each sync with the edits made until then, and those lost by a failed sync before it."""
        lost = 0
        for sync in self.syncs[:syncs]:
            below = (1 << sync.edits) - 1
            yield sync, below, lost
            if sync.failed:
                lost |= below & (self._chains.get(sync.inode, 0) if sync.inode else -1)

    def _floor(self, syncs: int) -> tuple[int, int]:
        """Return how long the prefix is at least under J, and of which edits the data is durable."""
        floor = synced = 0
        for sync, below, lost in self._failures(syncs):
            chain = below & ~lost & (self._chains.get(sync.inode, 0) if sync.inode else -1)
            # A commit of the journal made everything before it clean, except for data.
            dirty = chain >> floor or chain & self._data & ~synced
            if not sync.failed and dirty:
                floor = sync.edits
                synced |= chain & self._data
        return floor, synced

    def _with_data(self, masks: list[int], synced: int, rng: random.Random) -> Iterator[Loss]:
        """Yield each set of edits with none, half and all of the data not synced."""
        # Four files not synced are always taken in full.
        limit = max(3**4, 4 * LIMIT // len(masks))
        for mask in masks:
            loose = [1 << number for number in bits(mask & self._data & ~synced)]
            yield from self._combined(Loss(mask & ~union(iter(loose))), [_three(bit) for bit in loose], rng, limit)

    def _combined(self, start: Loss, parts: list[list[Loss]], rng: random.Random, limit: int = LIMIT) -> Iterator[Loss]:
        """Yield the start with one of each part, or a sample of that."""
        if math.prod(map(len, parts)) <= limit:
            for combination in itertools.product(*parts):
                yield _sum((start, *combination))
            return
        self.is_sampled = True
        ends = (0, -1)
        for index in ends:
            yield _sum([start, *(part[index] for part in parts)])
        odd = [(at, choice, index) for at, part in enumerate(parts) for choice in part for index in ends]
        for at, choice, index in odd if len(odd) <= limit else rng.sample(odd, limit):
            yield _sum([start, choice, *(part[index] for other, part in enumerate(parts) if other != at)])
        for _ in range(limit):
            yield _sum([start, *map(rng.choice, parts)])

    def _journal(self, edits: int, syncs: int, rng: random.Random) -> Iterator[Loss]:
        floor, synced = self._floor(syncs)
        return self._with_data([(1 << length) - 1 for length in range(floor, edits + 1)], synced, rng)

    def _log_tree(self, edits: int, syncs: int, rng: random.Random) -> Iterator[Loss]:
        floor = carried = synced = 0
        for sync, below, lost in self._failures(syncs):
            if sync.failed:
                continue
            if not sync.inode:
                floor = sync.edits
                carried |= below & ~lost
                synced |= below & ~lost & self._data
                continue
            chain = self._chains.get(sync.inode, 0) & below & ~lost
            carried |= chain
            synced |= chain & self._data
        carried = closure(self.edits, carried)
        masks = [(1 << length) - 1 | carried for length in range(floor, edits + 1)]
        return self._with_data(masks, synced, rng)

    def _failed(self, edits: int, syncs: int, rng: random.Random) -> Iterator[Loss]:
        floor, synced = self._floor(syncs)
        gone = 0
        for sync, below, lost in self._failures(syncs):
            if sync.failed:
                # What an earlier sync had made durable stays so.
                until = self._floor(self.syncs.index(sync))[0]
                chain = self._chains.get(sync.inode, 0) if sync.inode else -1
                gone |= below & ~lost & ~((1 << until) - 1) & chain & self._slots
        masks = [(1 << length) - 1 for length in range(floor, edits + 1)]
        masks += [self._without(mask, gone) for mask in masks]
        return self._with_data(masks, synced, rng)

    def _without(self, mask: int, gone: int) -> int:
        """Return a set of edits without some, and without all that need them."""
        for number in bits(mask):
            edit = self.edits[number]
            if (edit.needs | edit.roots) & gone:
                gone |= 1 << number
        return mask & ~gone

    def _subsets(self, edits: int, syncs: int, rng: random.Random) -> Iterator[Loss]:
        forced = 0
        for sync, below, lost in self._failures(syncs):
            if not sync.failed:
                chain = self._entries.get(sync.inode, 0) | self._own.get(sync.inode, 0) if sync.inode else -1
                forced |= chain & below & ~lost
        todo = forced
        while todo:
            todo = union(self.edits[number].needs for number in bits(todo)) & ~forced
            forced |= todo
        slots = list(bits(self._slots & ((1 << edits) - 1)))
        subsets = self._all_subsets(slots, forced)
        if not subsets:
            self.is_sampled = True
            subsets = list(dict.fromkeys(self._some_subsets(slots, forced, rng)))
        own = forced & ~self._slots
        chains = [(inode, chain & ((1 << edits) - 1) & ~forced) for inode, chain in self._own.items()]
        for subset in subsets:
            named = [
                chain
                for inode, chain in chains
                if chain and (inode not in self._born or subset & self._names.get(inode, 0))
            ]
            parts = [self._stages(chain) for chain in named]
            yield from self._combined(Loss(subset | own), parts, rng, max(8, 4 * LIMIT // len(subsets)))

    def _included(self, number: int, subset: int) -> bool:
        edit = self.edits[number]
        return not (edit.needs | edit.roots) & ~subset

    def _all_subsets(self, slots: list[int], forced: int) -> list[int]:
        """Return every subset of edits of entries; empty if there are too many."""
        subsets = [0]
        for number in slots:
            bit = 1 << number
            more = [subset | bit for subset in subsets if self._included(number, subset)]
            if forced & bit:
                subsets = [subset for subset in subsets if not self._included(number, subset)]
            subsets += more
            if len(subsets) > LIMIT:
                return []
        return subsets

    def _subset(self, slots: list[int], forced: int, wanted: int) -> int:
        """Return the subset of those wanted that can be, with those forced."""
        subset = 0
        for number in slots:
            if (forced | wanted) >> number & 1 and self._included(number, subset):
                subset |= 1 << number
        return subset

    def _some_subsets(self, slots: list[int], forced: int, rng: random.Random) -> Iterator[int]:
        """Yield none, all, all but one, one alone with what it needs, and random subsets."""
        for wanted in (0, -1, *(~(1 << number) for number in slots)):
            yield self._subset(slots, forced, wanted)
        for number in slots:
            yield self._subset(slots, forced, closure(self.edits, 1 << number))
        for _ in range(LIMIT):
            share = rng.choice((0.2, 0.5, 0.8, 0.95))
            yield self._subset(slots, forced, union(1 << number for number in slots if rng.random() < share))

    def _stages(self, chain: int) -> list[Loss]:
        """Return how far the changes of one inode may have got: none, half of its data, all; each if it has no data."""
        data = chain & self._data
        stages = [Loss(0)]
        done = 0
        for number in bits(chain):
            bit = 1 << number
            done |= bit
            if bit & data:
                stages.append(Loss(done, bit))
            if done & data == data:
                stages.append(Loss(done))
        if data:
            # Times set after the data add nothing to what it is like before: only sizes do.
            sizes = union(1 << number for number in bits(chain) if self.edits[number].size_bytes is not None)
            stages = [stage for stage in stages if stage.mask in (0, chain) or stage.halves or stage.mask & sizes]
        return stages


def _three(bit: int) -> list[Loss]:
    """Return none, half and all of the data of one edit."""
    return [Loss(0), Loss(bit, bit), Loss(bit)]


def _sum(losses: Iterable[Loss]) -> Loss:
    mask = halves = 0
    for loss in losses:
        mask |= loss.mask
        halves |= loss.halves
    return Loss(mask, halves)
