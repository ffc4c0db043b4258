"""What the proof claims of undoing, and of the daemon, on stock brokers.

Spec: design §3.3, §5; attacks A16, A17, A47, A48.
"""

from __future__ import annotations

from typing import Final

from tests.proof.claim import Claim
from tests.proof.sizes import Sizes

_KAFKA: Final = "tests/kafka"
UNDO: Final = Claim(
    key="undo",
    text="on stock brokers nothing staged is renamed back, purged or erased on a promise, and it comes back whole",
    where=(
        f"{_KAFKA}/test_undo.py::test_a47_nothing_is_renamed_back_whose_topic_was_deleted_or_made_again_meanwhile",
        f"{_KAFKA}/test_undo.py::test_a47_what_was_deleted_while_its_node_was_down_is_not_taken_back_unasked",
        f"{_KAFKA}/test_undo.py::test_a48_the_only_copy_is_not_purged_while_what_the_start_made_in_its_place_is_empty",
        f"{_KAFKA}/test_undo_page.py::test_a48_what_a_start_served_empty_comes_back_whole_by_both_ways_of_the_page",
        f"{_KAFKA}/test_renamed_by_hand.py::test_a47_what_is_renamed_back_by_hand_is_erased_up_to_3_6_and_then_a_stray",
    ),
    sizes={"scenarios on releases": Sizes(full=25, ci=5)},
    counted="scenarios on releases",
    needs="Java and Maven",
)
DAEMON_SOAK: Final = Claim(
    key="daemon-soak",
    text="daemon, workers and a stock broker killed at random instants of a random workload lose nothing, "
    "purge nothing early, and leave nothing to do by hand",
    where=(f"{_KAFKA}/test_daemon_soak.py::test_nothing_is_lost_or_early_and_nothing_is_left_whatever_is_killed",),
    sizes={"kills": Sizes(full=500, ci=15, ci_part=40)},
    needs="Java and Maven",
)
_STARTS: Final = "test_a22_no_start_of_a_broker_meets_a_lock_of_a_daemon_that_works_on_a_stopped_one"
DAEMON_STARTS: Final = Claim(
    key="daemon-starts",
    text="no start of a stock broker that was handed over meets a lock of a daemon that works on a stopped one",
    where=(f"{_KAFKA}/test_daemon_starts.py::{_STARTS}",),
    sizes={"starts": Sizes(full=200, ci=8, ci_part=25)},
    needs="Java and Maven",
)
DAEMON_DELETIONS: Final = Claim(
    key="daemon-deletions",
    text="every deletion beside a stock broker is captured, whatever holds the daemon up, and comes back whole",
    where=(f"{_KAFKA}/test_daemon.py::test_a17_every_deletion_beside_a_running_broker_is_captured_and_comes_back",),
    sizes={"topics": Sizes(full=200)},
    needs="Java and Maven",
)
_BACK: Final = f"{_KAFKA}/test_daemon_undo.py"
_MOUNTS: Final = f"{_KAFKA}/test_mounts.py"
DAEMON_UNDO: Final = Claim(
    key="daemon-undo",
    text="what daemons captured comes back whole: on three brokers with three replicas, from strays, beside a topic of "
    "the same name, on mount roots; a disk that captures would fill fails no write of its broker",
    where=(
        f"{_BACK}::test_a16_a17_a_topic_of_three_replicas_each_comes_back_on_three_brokers",
        f"{_BACK}::test_a16_a_topic_that_was_deleted_while_its_broker_was_down_comes_back_from_its_strays",
        f"{_BACK}::test_a16_what_a_topic_held_comes_back_beside_one_that_was_made_under_its_name_at_once",
        f"{_MOUNTS}::test_a05_a16_a_deleted_topic_comes_back_on_log_dirs_that_are_mount_roots",
        f"{_MOUNTS}::test_a14_a50_a_disk_that_captured_replicas_would_fill_never_fails_a_write_of_its_broker",
    ),
    sizes={"scenarios on releases": Sizes(full=10, ci=5)},
    counted="scenarios on releases",
    needs="Java, Maven and root",
)
