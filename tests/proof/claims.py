"""What the proof claims: each claim's words, the tests that show it, and how much of it is the whole.

A claim of this list that a full run does not show is a proof that failed: it cannot be lost by renaming a test.

Spec: ``docs/architecture.md``, "Two tiers of proof".
"""

from __future__ import annotations

from typing import Final

from tests.proof.claim import Claim, tests_of
from tests.proof.daemon_claims import DAEMON_CLAIMS
from tests.proof.host_claims import HOST_CLAIMS
from tests.proof.kafka_claims import BROKER_CLAIMS
from tests.proof.metadata_claims import (
    CLUSTER_JUDGED,
    DAMAGED_BATCHES,
    DAMAGED_LOGS,
    FAST_RECORDS,
    GOLDEN_DUMPS,
    GOLDEN_FRAMES,
    KAFKA_READS,
    RECONCILE,
    RECONCILE_KILLS,
    RECOVERY_COMPARED,
    ROUND_TRIPS,
    STOCK_DECODER,
)
from tests.proof.mutant_claims import MUTANTS, SOWN_BUGS
from tests.proof.sizes import Sizes

_FORMATS: Final = "tests/logdir/formats"
_DAMAGED: Final = Sizes(full=10_000)
_SENT: Final = Sizes(full=10_000, sample=200)
_DAEMON: Final = "tests/logdir/daemon/test_damaged.py"
_DAMAGED_DOCUMENTS: Final = Sizes(full=100_000, sample=1_000)
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
                "staging_limit_file", "handover_file", "heartbeat_file", "java_properties", "leader_epoch_checkpoint",
                "meta_properties", "offset_checkpoint", "partition_metadata",
            )
        ),
        f"{_FORMATS}/test_server_properties.py::test_damaged_files_raise_one_of_two_families",
        f"{_FORMATS}/test_controller_file.py::test_damaged_files_raise_only_format_errors",
        "tests/logdir/cluster/test_request_document.py::test_damaged_documents_raise_only_format_errors",
        "tests/logdir/cluster/test_znodes.py::test_damaged_documents_raise_only_format_errors",
    ),
    sizes={
        "staging-limit.json": _DAMAGED,
        "controller.json": _DAMAGED,
        "request documents": _DAMAGED_DOCUMENTS,
        "znode documents": _DAMAGED_DOCUMENTS,
        "handover.json": _DAMAGED,
        "heartbeat.json": _DAMAGED,
        "java properties": _DAMAGED,
        "leader-epoch checkpoints": _DAMAGED,
        "meta.properties": _DAMAGED,
        "offset checkpoints": _DAMAGED,
        "partition.metadata": _DAMAGED,
        "server.properties": _DAMAGED,
    },
)  # fmt: skip
DAMAGED_REQUESTS: Final = Claim(
    key="damaged-requests",
    text="a damaged request, document or frame gets a typed answer, stops nothing of a daemon and changes nothing",
    where=(
        f"{_DAEMON}::test_damaged_requests_change_nothing_and_stop_nothing",
        f"{_DAEMON}::test_damaged_documents_are_refused_by_name_and_change_nothing",
        "tests/logdir/daemon/test_damaged_frames.py::test_damaged_frames_of_brokers_say_nothing",
        "tests/logdir/daemon/test_damaged_frames.py::test_damaged_frames_change_nothing_of_a_running_daemon",
    ),
    sizes={
        "requests": _SENT,
        "documents": _SENT,
        "whole documents amid them": Sizes(full=200, sample=4),
        "frames": _SENT,
        "frames to a running daemon": Sizes(full=1_000, sample=20),
    },
)
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
    sizes={
        "trees walked fast": Sizes(full=12, ci=12),
        "trees walked exactly": Sizes(full=12, ci=12),
        "entries compared": Sizes(full=1_072, ci=1_072),
    },
)
KAFKA_LOG_DIRS: Final = Claim(
    key="kafka-log-dirs",
    text="our sizes are those of stock kafka-log-dirs, broker running, moving, stopped and killed",
    where=("tests/kafka/test_inventory_agrees.py::test_inventory_agrees_with_kafka_log_dirs",),
    sizes={"releases": Sizes(full=4, ci=1), "comparisons": Sizes(full=20, ci=5)},
    needs="Java and Maven",
)
RANDOM_FLEETS: Final = Claim(
    key="random-fleets",
    text="the plan of a random fleet is the one an independent judge works out",
    where=("tests/oracle/test_planner_agrees.py::test_a_random_fleet_gets_the_plan_the_text_asks_for",),
    sizes={"fleets": Sizes(full=300, ci=40, sample=1)},
)
PERMUTATIONS: Final = Claim(
    key="permutations",
    text="order of rows, of the fleet file and number of Spark partitions change no byte of a plan",
    where=(
        "tests/migrate/test_plan.py::test_order_and_partitions_change_no_byte",
        "tests/migrate/test_plan.py::test_the_order_of_the_fleet_file_changes_no_byte",
    ),
    sizes={"shuffles": Sizes(full=13, ci=13)},
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
    sizes={label: Sizes(full=14, ci=14) for label in ("conflicts", "kinds")},
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
# States are those of all cases, rounded down: an operation that makes a call less has some hundred less.
CRASHES: Final = Claim(
    key="crashes",
    text="stage, restore, hold, purge and small files survive a kill and a power cut at every call, under every model",
    where=(f"{_OPERATIONS}::test_every_operation_survives_every_crash",),
    sizes={"distinct states": Sizes(full=13_000)},
)
CRASHES_WITHIN_RECOVERY: Final = Claim(
    key="crashes-within-recovery",
    text="so does their recovery, cut at every call",
    where=(f"{_OPERATIONS}::test_every_operation_survives_a_crash_within_its_recovery",),
    # CI leaves out the long purges: ten thousand states whose recovery is one sync.
    sizes={"states": Sizes(full=400_000, ci_part=20)},
)
ERRNOS_EVERYWHERE: Final = Claim(
    key="errnos-everywhere",
    text="every errno at every call, once and for ever, ends done, undone or with a disk that is written no more",
    where=(f"{_OPERATIONS}::test_every_errno_at_every_call_ends_done_undone_or_read_only",),
    # CI leaves out the operations of which each errno at each call takes long.
    sizes={"states": Sizes(full=600_000, ci_part=50)},
)
SEEDED_BUGS: Final = Claim(
    key="seeded-bugs",
    text="every bug sown into these operations is caught, and so is every sync left out that is not written down",
    where=(
        "tests/crash/seeded/test_seeded.py::test_a_bug_that_was_sown_is_caught",
        "tests/crash/seeded/test_seeded.py::test_a_sync_left_out_is_caught_or_written_down",
    ),
    sizes={"changes to the source": Sizes(full=36, ci=36)},
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

TREES_START: Final = Claim(
    key="trees-start",
    text="a real tree that was killed on its way to ids and back, and into staging and back, is served as untouched",
    where=("tests/kafka/test_trees_start.py::test_a_tree_that_went_there_and_back_is_served_as_an_untouched_copy",),
    sizes={
        "trees by the release that wrote them": Sizes(full=9, ci=2),
        "trees of 3.x by the newest release": Sizes(full=5, ci=1),
    },
    needs="Java and Maven",
)


_KERNEL: Final = "tests/kernel"
_MOUNTS: Final = "root, loop devices, e2fsprogs, xfsprogs, btrfs-progs"
POWER_CUTS: Final = Claim(
    key="power-cuts",
    text="every operation survives a power cut at any call on real ext4, XFS and btrfs, and another in its recovery",
    where=(f"{_KERNEL}/test_power_cuts.py::test_a11_no_power_cut_at_any_call_loses_or_doubles_anything",),
    sizes={"power cuts": Sizes(full=3_000, sample=30)},
    needs=_MOUNTS,
)
POWER_CUTS_WITHIN: Final = Claim(
    key="power-cuts-within",
    text="so does each between any two system calls of one call, an export's among them",
    where=(f"{_KERNEL}/test_power_cuts.py::test_a11_nor_does_one_between_the_system_calls_of_a_call",),
    sizes={"power cuts": Sizes(full=1_000, sample=4)},
    needs=f"{_MOUNTS}, strace",
)
POWER_CUTS_AGREE: Final = Claim(
    key="power-cuts-agree",
    text="two ways to cut the power, the shutdown of the file system and a copy of its image, leave the same",
    where=(f"{_KERNEL}/test_power_cuts.py::test_two_ways_to_cut_the_power_leave_the_same",),
    sizes={"power cuts": Sizes(full=200, sample=4)},
    needs=_MOUNTS,
)
TRACES: Final = Claim(
    key="traces",
    text="the kernel gets from every operation the system calls of the model, in their order, and no others",
    where=(f"{_KERNEL}/test_system_calls.py::test_the_model_makes_the_calls_that_the_kernel_hears",),
    sizes={"operations": Sizes(full=55, ci=55)},
    needs="root, strace",
)
REAL_ERRNOS: Final = Claim(
    key="real-errnos",
    text="a system call of a real process that fails, once or for ever, ends done, undone or with a disk read-only",
    where=(f"{_KERNEL}/test_system_calls.py::test_an_errno_at_any_system_call_ends_done_undone_or_read_only",),
    sizes={"failures": Sizes(full=2_000, sample=20)},
    needs="root, strace",
)
REAL_KILLS: Final = Claim(
    key="real-kills",
    text="a real process killed at any system call is recovered from",
    where=(f"{_KERNEL}/test_system_calls.py::test_a_kill_at_any_system_call_is_recovered_from",),
    sizes={"kills": Sizes(full=1_500, sample=20)},
    needs="root, strace",
)

_SOAK: Final = "tests/crash/soak/test_soak.py"
KILLS: Final = Claim(
    key="kills",
    text="a real process killed at random instants, among random operations on three disks, loses and doubles nothing",
    where=(f"{_SOAK}::test_a_process_killed_at_any_instant_loses_doubles_and_sticks_nothing",),
    sizes={"kills": Sizes(full=2_000, ci=200, sample=20)},
)
BLACK_BOX: Final = Claim(
    key="black-box-soak",
    text="commands killed anywhere on three log dirs, a broker beside them, do nothing that a judge who knows none of "
    "their code would not expect",
    where=("tests/soak/test_soak.py::test_nothing_is_lost_early_doubled_or_changed_by_commands_killed_anywhere",),
    sizes={"rounds": Sizes(full=20_000, ci=500, sample=40, ci_part=40)},
)
FULL_DISKS: Final = Claim(
    key="full-disks",
    text="with not a byte and not an inode free every operation is done, and survives a power cut there",
    where=(
        f"{_KERNEL}/test_full_disk.py::test_a10_every_operation_is_done_on_a_full_disk_and_survives_a_power_cut_there",
    ),
    sizes={"runs": Sizes(full=300, sample=4)},
    needs=_MOUNTS,
)
_SICK: Final = f"{_KERNEL}/test_sick_disk.py"
_HUNG: Final = "tests/hung"
HUNG_COMMANDS: Final = Claim(
    key="hung-commands",
    text="beside a log dir that hangs as it is opened, listed, read, locked or written, every command answers for the "
    "others within its time-out and a second, names it, lets the locks of the others go within 2.5 s, and leaves no "
    "process and no half change behind",
    where=(
        *tests_of(
            f"{_HUNG}/test_hung.py",
            "a49_a_command_that_reads_answers_for_the_others",
            "a49_a_log_that_hangs_as_its_end_is_read_is_named",
            "what_looks_at_no_lock_is_not_hindered_by_one_that_hangs",
            "a_change_whose_writes_hang_is_made_on_the_others_and_nothing_follows_it",
            "a40_a_change_that_hangs_at_any_of_its_syncs_is_done_on_the_others_and_whole_there",
            "a_change_on_a_frozen_disk_is_made_on_the_others",
            "what_only_reads_is_not_hindered_by_a_frozen_disk",
            "a_command_that_is_ended_while_one_hangs_lets_the_others_go",
            "a_second_command_while_the_worker_of_the_first_still_hangs",
            "a49_what_needs_every_disk_is_refused_by_the_name_of_the_one_that_hangs",
        ),
        f"{_HUNG}/test_points.py::test_a49_a_command_answers_for_the_others_wherever_one_hangs",
        f"{_HUNG}/test_points.py::test_a22_a_change_goes_on_without_a_disk_that_hangs_as_it_is_locked",
        f"{_HUNG}/test_points.py::test_a22_a_command_that_looks_answers_for_the_others_beside_a_lock_that_hangs",
        f"{_HUNG}/test_amid_batch.py::test_a22_a49_the_locks_of_the_others_are_free_in_time",
        *tests_of(
            f"{_HUNG}/test_every_command.py",
            "a49_every_command_that_looks_beside_a_disk_on_which_no_signal_ends_a_process",
            "a49_what_goes_on_without_a_disk_that_hangs_is_done_on_the_others",
            "a49_what_needs_every_disk_and_cannot_write_to_one_changes_none",
            "a22_a_hang_at_kafkas_own_lock",
            "metadata_on_a_disk_that_hangs_is_one_line_in_time",
            "metadata_beside_a_disk_that_hangs_is_read",
            "a_metadata_log_on_another_disk_that_hangs_takes_no_second_timeout",
            "a_lost_owner_lock_beside_a_kafka_lock_that_hangs",
            "a49_work_roots_are_made_on_all_disks_or_it_is_said_on_which",
        ),
        *tests_of(
            f"{_HUNG}/test_layout_under_way.py",
            "a37_a_change_of_layout_half_way_stays_as_it_is_beside_a_disk_that_cannot_be_looked_at",
            "a37_a_change_of_layout_half_way_stays_as_it_is_beside_a_disk_that_cannot_be_written_to",
            "a22_a_change_of_layout_half_way_stays_as_it_is_beside_a_kafka_lock_that_hangs",
        ),
    ),
    sizes={"hangs": Sizes(full=110, ci=72)},
    counted="hangs",
    needs="root, loop devices, FUSE",
)
HUNG_CALLS: Final = Claim(
    key="hung-calls",
    text="a call that hangs on a frozen disk, and is made after its process was killed, is recovered from",
    where=(f"{_SICK}::test_a40_a_call_that_hangs_is_made_after_the_kill_and_recovered_from",),
    sizes={"frozen disks": Sizes(full=300, sample=4)},
    needs=_MOUNTS,
)
DISKS_GONE: Final = Claim(
    key="disks-gone",
    text="a disk that turns read-only or is gone amid an operation is written no more, and recovered when it is back",
    where=(f"{_SICK}::test_a_disk_that_turns_read_only_or_is_gone_amid_an_operation_is_written_no_more",),
    sizes={"disks": Sizes(full=300, sample=4)},
    needs=_MOUNTS,
)
SHORT_WRITES: Final = Claim(
    key="short-writes",
    text="a write of which a part arrives before it fails is finished or undone",
    where=(f"{_SICK}::test_a_short_write_is_finished_or_undone",),
    sizes={"short writes": Sizes(full=100, sample=4)},
    needs=_MOUNTS,
)
_LEFT_OUT: Final = "tests/crash/seeded"
SYNCS: Final = Claim(
    key="syncs",
    text="each sync of every operation on a disk, left out by itself, is missed by a model, or it is written down why",
    where=(
        f"{_LEFT_OUT}/test_seeded.py::test_a_sync_left_out_is_caught_or_written_down",
        f"{_LEFT_OUT}/test_families.py::test_a_sync_left_out_is_missed_or_written_down",
    ),
    sizes={"syncs": Sizes(full=74, ci=27)},
)
FAMILY_BUGS: Final = Claim(
    key="family-bugs",
    text="so is every bug sown into capture, adoption, layout, start block, work roots, records, copies, "
    "and late decisions",
    where=(f"{_LEFT_OUT}/test_families.py::test_a_bug_that_was_sown_is_caught",),
    sizes={"changes to the source": Sizes(full=16, ci=2)},
    counted="changes to the source",
)
_FAMILIES: Final = "tests/crash/families/test_cases.py"
FAMILY_CRASHES: Final = Claim(
    key="family-crashes",
    text="capture, adoption, layout, start block, work roots, records and copies survive a kill and a power cut "
    "at every call",
    where=(f"{_FAMILIES}::test_every_case_survives_every_crash",),
    sizes={"cases": Sizes(full=137), "distinct states": Sizes(full=70_000)},
)
FAMILY_CRASHES_WITHIN: Final = Claim(
    key="family-crashes-within",
    text="so does what a start then makes of them, cut at every call",
    where=(f"{_FAMILIES}::test_every_case_survives_a_crash_within_its_recovery",),
    sizes={"states": Sizes(full=1_000_000)},
)

SWAPS: Final = Claim(
    key="swaps",
    text="while components of its paths are swapped for links, no operation so much as opens anything outside",
    where=("tests/crash/swaps/test_swaps.py::test_r23_symlink_and_swap_races_touch_nothing_outside",),
    sizes={"operations": Sizes(full=100_000, ci=10_000, sample=1_000)},
)
_RACES: Final = "tests/crash/races/test_races.py"
INTERLEAVINGS: Final = Claim(
    key="interleavings",
    text="restore, purge and capture in every order of their steps, and a crash at any call, lose and double nothing",
    where=(f"{_RACES}::test_every_order_of_restore_purge_and_capture_survives_a_crash_anywhere",),
    sizes={"orders": Sizes(full=210, ci=42, sample=14)},
)
TURNS: Final = Claim(
    key="turns",
    text="two processes that take turns at every call never both have what they restore or purge",
    where=(f"{_RACES}::test_two_that_take_turns_at_every_call_never_both_have_it",),
    sizes={"interleavings": Sizes(full=36, ci=36)},
)

CLAIMS: Final = (
    NAMES, DAMAGED_FILES, DAMAGED_REQUESTS, DAMAGED_INVENTORIES, TREES, KAFKA_LOG_DIRS,
    RANDOM_FLEETS, PERMUTATIONS, FEWEST_WAVES,
    FLOORS, WAVES_IN_ANY_ORDER, SOWN, CONTRAST, FIGURES, CRASHES, CRASHES_WITHIN_RECOVERY,
    ERRNOS_EVERYWHERE, SEEDED_BUGS, RESTARTS, REBOOTS, WALL_CLOCK, STALE_STEPS,
    LAYOUT_KILLS, TREES_START, RECONCILE, RECONCILE_KILLS,
    ROUND_TRIPS, FAST_RECORDS, DAMAGED_BATCHES, DAMAGED_LOGS, GOLDEN_DUMPS, GOLDEN_FRAMES,
    KAFKA_READS, STOCK_DECODER, CLUSTER_JUDGED, RECOVERY_COMPARED, *BROKER_CLAIMS, *DAEMON_CLAIMS, *HOST_CLAIMS,
    POWER_CUTS, POWER_CUTS_WITHIN, POWER_CUTS_AGREE, TRACES, REAL_ERRNOS, REAL_KILLS,
    FULL_DISKS, HUNG_COMMANDS, HUNG_CALLS, DISKS_GONE, SHORT_WRITES,
    KILLS, BLACK_BOX, SYNCS, FAMILY_BUGS, FAMILY_CRASHES, FAMILY_CRASHES_WITHIN, SWAPS, INTERLEAVINGS,
    TURNS, SOWN_BUGS, MUTANTS,
)  # fmt: skip
"""In the order of the page."""
