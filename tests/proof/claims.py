"""What the proof claims: each claim's words, the tests that show it, and how much of it is the whole.

A claim of this list that a full run does not show is a proof that failed: it cannot be lost by renaming a test.

Spec: ``docs/architecture.md``, "Two tiers of proof".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.proof.sizes import SIZE, Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One line of the proof."""

    key: str
    text: str
    """Short; a line of the page."""
    where: tuple[str, ...]
    """Node ids of test functions, without parameters. All must have run and passed."""
    sizes: Mapping[str, Sizes] = field(default_factory=dict)
    """Label of what is counted to how much of it each size of run takes; other labels are counted as they come."""
    counted: str = ""
    """Label under which each passed test counts one, where the tests record nothing themselves."""
    needs: str = ""
    """What a machine may lack; then the claim is listed as not run."""

    def count(self, label: str) -> int:
        """Return how many of ``label`` this run takes."""
        return self.sizes[label].at(SIZE)

    def is_shown_by(self, test: str) -> bool:
        """Tell whether the node id is one of this claim's tests, with parameters or without."""
        return test.partition("[")[0] in self.where


_FORMATS: Final = "tests/logdir/formats"
_DAMAGED: Final = Sizes(full=10_000)
_BROWSER: Final = "tests/browser/test_report_page.py"

NAMES: Final = Claim(
    key="names",
    text="two parsers of directory names, written apart, agree",
    where=("tests/logdir/test_names.py::test_two_readers_agree_on_a_million_names",),
    sizes={"names": Sizes(full=1_000_000)},
)
DAMAGED_FILES: Final = Claim(
    key="damaged-files",
    text="a damaged file is read or refused by a typed error that names it, never another exception",
    where=(
        *(
            f"{_FORMATS}/test_{name}.py::test_damaged_files_raise_only_format_errors"
            for name in (
                "brake_file", "heartbeat_file", "java_properties", "leader_epoch_checkpoint", "meta_properties",
                "offset_checkpoint", "partition_metadata",
            )
        ),
        f"{_FORMATS}/test_server_properties.py::test_damaged_files_raise_one_of_two_families",
    ),
    sizes={
        "brake.json": _DAMAGED,
        "heartbeat.json": _DAMAGED,
        "java properties": _DAMAGED,
        "leader-epoch checkpoints": _DAMAGED,
        "meta.properties": _DAMAGED,
        "offset checkpoints": _DAMAGED,
        "partition.metadata": _DAMAGED,
        "server.properties": _DAMAGED,
    },
)  # fmt: skip
DAMAGED_INVENTORIES: Final = Claim(
    key="damaged-inventories",
    text="no altered inventory file is taken for whole",
    where=(f"{_FORMATS}/test_inventory.py::test_no_altered_file_is_taken_for_whole",),
    sizes={"altered files": _DAMAGED},
)
TREES: Final = Claim(
    key="trees",
    text="the inventory of every tree a real broker wrote agrees with its manifest, fast and exact",
    where=("tests/logdir/observe/test_trees.py::test_inventory_agrees_with_the_manifest",),
    sizes={"trees walked fast": Sizes(full=12, ci=12), "trees walked exactly": Sizes(full=12, ci=12)},
)
KAFKA_LOG_DIRS: Final = Claim(
    key="kafka-log-dirs",
    text="our sizes are those of stock kafka-log-dirs, broker running, moving, stopped and killed",
    where=("tests/kafka/test_inventory_agrees.py::test_inventory_agrees_with_kafka_log_dirs",),
    sizes={"releases": Sizes(full=2, ci=2)},
    needs="Java and Maven",
)
RANDOM_FLEETS: Final = Claim(
    key="random-fleets",
    text="the plan of a random fleet is the one an independent judge works out",
    where=("tests/oracle/test_planner_agrees.py::test_a_random_fleet_gets_the_plan_the_text_asks_for",),
    sizes={"fleets": Sizes(full=300, ci=40, sample=6)},
)
PERMUTATIONS: Final = Claim(
    key="permutations",
    text="order of rows, of the fleet file and number of Spark partitions change no byte of a plan",
    where=(
        "tests/migrate/test_plan.py::test_order_and_partitions_change_no_byte",
        "tests/migrate/test_plan.py::test_the_order_of_the_fleet_file_changes_no_byte",
    ),
    counted="shuffles",
)
FEWEST_WAVES: Final = Claim(
    key="fewest-waves",
    text="a fleet of up to eight brokers gets the fewest waves there can be, by exhaustive search",
    where=("tests/migrate/test_waves.py::test_two_hundred_small_fleets_have_the_fewest_waves_possible",),
    sizes={
        "fleets ignoring racks": Sizes(full=200, ci=200),
        "fleets respecting racks": Sizes(full=200, ci=200),
    },
)
FLOORS: Final = Claim(
    key="floors",
    text="over a thousand brokers every partition keeps its floor in every wave",
    where=("tests/migrate/test_waves.py::test_a_million_groups_over_a_thousand_brokers",),
    sizes={
        f"partitions at min.insync.replicas {least}": Sizes(full=1_000_000, ci=100_000, sample=20_000)
        for least in (1, 2)
    },
)
WAVES_IN_ANY_ORDER: Final = Claim(
    key="waves-in-any-order",
    text="order and repetition of brokers and partitions change no wave",
    where=("tests/migrate/test_waves.py::test_order_and_repetition_change_nothing",),
    sizes={"shuffled fleets": Sizes(full=80, ci=80)},
)
SOWN: Final = Claim(
    key="sown",
    text="every conflict sown into the demonstration is found, with broker and path",
    where=("tests/test_demo.py::test_every_sown_conflict_is_printed_with_broker_and_path",),
)
CONTRAST: Final = Claim(
    key="contrast",
    text="the report fits its window and every text has a contrast of 4.5 or more, light and dark, narrow and wide",
    where=(f"{_BROWSER}::test_page_fits_and_can_be_read",),
    sizes={"pages": Sizes(full=20, ci=20)},
    needs="Chromium",
)
FIGURES: Final = Claim(
    key="figures",
    text="every number the report shows is the plan's",
    where=(f"{_BROWSER}::test_every_number_shown_is_the_plans",),
    sizes={"pages": Sizes(full=5, ci=5)},
    needs="Chromium",
)

_DEADLINE: Final = "tests/logdir/decide/test_deadline_in_time.py"
RESTARTS: Final = Claim(
    key="restarts",
    text="over process restarts at random instants a purge starts at its deadline, at most one sweep late",
    where=(f"{_DEADLINE}::test_restarts_of_the_process_move_no_deadline",),
    sizes={"restarts": Sizes(full=1000, ci=1000)},
)
REBOOTS: Final = Claim(
    key="reboots",
    text="over reboots no purge is early, and none later than the gaps that were not credited",
    where=(f"{_DEADLINE}::test_reboots_make_nothing_early_and_late_only_by_gaps_not_credited",),
    sizes={"reboots": Sizes(full=1000, ci=1000, sample=200)},
)
WALL_CLOCK: Final = Claim(
    key="wall-clock",
    text="a wall clock that is wrong by up to ten years, within a boot or over one, purges nothing early",
    where=(f"{_DEADLINE}::test_ten_years_of_wall_clock_make_nothing_early",),
    sizes={"jumps": Sizes(full=1000, ci=1000, sample=200)},
)

_OPERATIONS: Final = "tests/crash/test_operations.py"
CRASHES: Final = Claim(
    key="crashes",
    text="stage, restore, hold, purge and small files survive a kill and a power cut at every call, under every model",
    where=(f"{_OPERATIONS}::test_every_operation_survives_every_crash",),
    sizes={"distinct states": Sizes(full=10_000, ci=10_000)},
)
CRASHES_WITHIN_RECOVERY: Final = Claim(
    key="crashes-within-recovery",
    text="so does their recovery, cut at every call",
    where=(f"{_OPERATIONS}::test_every_operation_survives_a_crash_within_its_recovery",),
    sizes={"states": Sizes(full=100_000)},
)
ERRNOS_EVERYWHERE: Final = Claim(
    key="errnos-everywhere",
    text="every errno at every call, once and for ever, ends done, undone or with a disk that is written no more",
    where=(f"{_OPERATIONS}::test_every_errno_at_every_call_ends_done_undone_or_read_only",),
    sizes={"states": Sizes(full=100_000)},
)
SEEDED_BUGS: Final = Claim(
    key="seeded-bugs",
    text="every bug sown into these operations is caught, and so is every sync left out that is not written down",
    where=(
        "tests/crash/seeded/test_seeded.py::test_a_bug_that_was_sown_is_caught",
        "tests/crash/seeded/test_seeded.py::test_a_sync_left_out_is_caught_or_written_down",
    ),
    counted="changes to the source",
)

_LAYOUT: Final = "tests/tools/test_layout_random.py"
STALE_STEPS: Final = Claim(
    key="stale-steps",
    text="after random changes between plan and apply stale steps are refused by name, the rest applied and taken back",
    where=(f"{_LAYOUT}::test_after_random_changes_stale_steps_are_refused_by_name_and_the_rest_applied",),
    sizes={"changes": Sizes(full=1000)},
)
LAYOUT_KILLS: Final = Claim(
    key="layout-kills",
    text="a change of layout killed at any moment goes on or back to the same end",
    where=(f"{_LAYOUT}::test_killed_at_any_moment_it_goes_on_or_back_to_the_same_end",),
    sizes={"kills": Sizes(full=200, sample=5)},
)

CLAIMS: Final = (
    NAMES, DAMAGED_FILES, DAMAGED_INVENTORIES, TREES, KAFKA_LOG_DIRS, RANDOM_FLEETS, PERMUTATIONS, FEWEST_WAVES,
    FLOORS, WAVES_IN_ANY_ORDER, SOWN, CONTRAST, FIGURES, CRASHES, CRASHES_WITHIN_RECOVERY,
    ERRNOS_EVERYWHERE, SEEDED_BUGS, RESTARTS, REBOOTS, WALL_CLOCK, STALE_STEPS,
    LAYOUT_KILLS,
)  # fmt: skip
"""In the order of the page."""
