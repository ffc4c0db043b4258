"""The look before a purge: what the cluster says now of what was set aside because it said so.

The source is the broker's own metadata log where it has one, or what ``--from`` names. It is read when the command
begins, and once more, with what lies on the disks, before whatever goes later than some seconds after that.

Not here: what follows (``decide.second_look``), reading a source (``desired_source``).

Spec: design §2 law 1, §4; attacks A2, A20, A28, A43.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from logdir.clock import boottime_ms
from logdir.decide.position import highest
from logdir.decide.purge import Purge
from logdir.decide.refusal import at
from logdir.decide.second_look import SecondLook, against_purge
from logdir.decide.trust import ANY_AGE_MS, check_image
from logdir.disk import controller
from logdir.disk.kernel_clock import read_instant
from logdir.errors import ConfigError, LogDirError, Problem, RefusedError
from logdir.formats.controller_file import ControllerFile
from logdir.observe.facts import LogDirFacts, SetAside
from tools.logdirctl.broker import OpenBroker
from tools.logdirctl.desired_source import METADATA_DIR, is_running, own_log, read_desired
from tools.logdirctl.source import OWN_LOG, Scheme, parse_uri, quorum_word
from tools.logdirctl.staged import none_closely

_FRESH_MS = 10 * 1000
"""How long what was looked at counts as just looked at: reading a large log costs seconds."""


class Looking:
    """What is known now; looks again when that is some seconds old."""

    def __init__(self, arguments: argparse.Namespace, broker: OpenBroker, facts: Sequence[LogDirFacts]) -> None:
        """Look for the first time.

        Args:
            arguments: With those of ``desired_source.add_source``.
            broker: Open.
            facts: Of every log dir configured for it, just looked at.

        Raises:
            ConfigError: the source is not named right, or is a request document.
        """
        self._arguments, self._broker = arguments, broker
        if parse_uri(arguments.source).scheme is Scheme.REQUEST:
            # It says what follows from it once; not what is so now.
            raise ConfigError((Problem("config-error", "--from", "metadata:[DIR] or znodes:FILE", arguments.source),))
        quorum_word(arguments)
        self.facts: tuple[LogDirFacts, ...] = tuple(facts)
        self._has_source = True
        self._items: dict[tuple[str, str], SetAside] = {}
        self.problem: Problem | None = None
        """Why there is no image, where there should be one."""
        self.look = self._read()
        self._at_ms = boottime_ms()

    def against(self, action: Purge) -> LogDirError | None:
        """Return why something may not be removed although it was decided so, ``None`` if it may.

        Args:
            action: Not claimed yet; what was is only finished.
        """
        if action.marker is None:
            return None
        if self._has_source and boottime_ms() - self._at_ms > _FRESH_MS:
            self.facts = self._broker.look(none_closely)
            self.look = self._read()
            self._at_ms = boottime_ms()
        item = self._items.get((action.log_dir, action.name))
        if item is None:
            place = self._broker.site_of(action.log_dir).path_of(f"deleting/{action.name}")
            return RefusedError(place, expected="what was decided on", found="nothing", fix="look again")
        refusal = against_purge(self.look, item, self.facts)
        return None if refusal is None else RefusedError.of(at(item.place, refusal).problem)

    def _read(self) -> SecondLook:
        self._items = {(one.log_dir, item.name): item for one in self.facts for item in one.set_aside}
        used = highest(controller.read_records(self._broker.sites))
        named, now_ms = self._broker.named, max(0, read_instant().wall_ms)
        uri = parse_uri(self._arguments.source)
        own = own_log(named, self.facts)
        is_there = own is not None and os.path.isdir(own)  # noqa: PTH112 - unlike Path's it never raises
        if uri == OWN_LOG and not is_there:
            if self._is_zookeeper(used):
                self._has_source = False
                return SecondLook(image=None, used=used)
            expected = "the broker's own metadata log, which says what is wanted again"
            fix = "mount its disk, name another source with --from, or name what is to go with --even-if-early"
            return self._blind(used, Problem("refused", own or METADATA_DIR, expected, "none", fix))
        try:
            running = is_running(named.log_dirs)
            desired = read_desired(
                self._arguments, named, self.facts, used, now_ms=now_ms, is_broker_running=running, is_past_needed=False
            )
        except LogDirError as error:
            if uri != OWN_LOG:
                raise
            return self._blind(used, error.problem())
        distrust = check_image(desired.image, self.facts, desired.standing(), now_ms)
        if distrust is None:
            return SecondLook(image=desired.image, used=used)
        if not distrust.holds_purges:
            # Beside a running broker: its newest snapshot may be an hour old.
            again = check_image(desired.image, self.facts, desired.standing(max_age_ms=ANY_AGE_MS), now_ms)
            if again is None:
                return SecondLook(image=None, used=used, aged=desired.image)
            distrust = again
        if uri != OWN_LOG or distrust.holds_purges:
            self.problem = distrust.problem
        return SecondLook(image=None, used=used, held=distrust.problem if distrust.holds_purges else None)

    def _is_zookeeper(self, used: ControllerFile | None) -> bool:
        """Whether a broker without a metadata log is one that never had any."""
        if used is not None and used.metadata is not None:
            return False
        named = self._broker.named
        if named.is_kraft is not None:
            return not named.is_kraft
        # On a disk that is away there may be one.
        return all(one.problem is None for one in self.facts)

    def _blind(self, used: ControllerFile | None, problem: Problem) -> SecondLook:
        """Look without a log that there is: nothing goes unattended, only what is named for removal now."""
        self.problem = problem
        return SecondLook(image=None, used=used, held=None if self._arguments.even_if_early else problem)
