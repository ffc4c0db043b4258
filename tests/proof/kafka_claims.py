"""What the proof claims of undoing, of the daemon and of the client, on stock brokers.

Spec: design §3.3, §5; attacks A16, A17, A47, A48.
"""

from __future__ import annotations

from typing import Final

from tests.proof.claim import Claim, tests_of
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
DELETE_DELAYS_S: Final = (60, 5)
"""Kafka's default, and one that allows no restart of the daemon."""
WITHOUT_HINTS: Final = "directories captured although their hints were dropped"
LATE: Final = "directories captured late by a worker that had stood still"
BY_START: Final = "directories found by a start of the daemon"
TOO_LONG: Final = "gap that was too long, counted and named"
OF_MANY_FILES: Final = "directories of 1,000 files"


def deleted_at(delay_s: int, *, topics: int, directories: int) -> dict[str, int]:
    """Return the counts of what was deleted at a delete delay of the broker."""
    where = f"at a delete delay of {delay_s} s"
    return {f"topics {where}": topics, f"partition directories {where}": directories}


DAEMON_DELETIONS: Final = Claim(
    key="daemon-deletions",
    text="every deletion beside a stock broker is captured, whatever holds the daemon up, and comes back whole; "
    "a time without a daemon that is too long is counted",
    where=(
        f"{_KAFKA}/test_daemon.py::test_a17_every_deletion_beside_a_running_broker_is_captured_and_comes_back",
        f"{_KAFKA}/test_daemon.py::test_a_time_without_a_daemon_that_is_too_long_is_counted_and_named",
    ),
    # Of two releases, 200 topics and 2,000 directories each, of which the test asks for all in each of its runs. CI
    # takes a tenth of one release.
    sizes={
        **{
            label: Sizes(full=2 * full, ci=full // 10, ci_part=20)
            for delay_s in DELETE_DELAYS_S
            for label, full in deleted_at(delay_s, topics=200, directories=2000).items()
        },
        # Which way a deletion is found is a matter of time: at least one is, in each run that has this way.
        WITHOUT_HINTS: Sizes(full=4, ci=2),
        LATE: Sizes(full=4, ci=2),
        BY_START: Sizes(full=2, ci=1),
        TOO_LONG: Sizes(full=2, ci=1),
        OF_MANY_FILES: Sizes(full=20, ci=10),
    },
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
ADOPTION: Final = Claim(
    key="adoption-by-the-page",
    text="a deleted topic of one replica and of two comes back on stock brokers by what docs/undo.md says to type",
    where=(
        f"{_KAFKA}/test_adopt_page.py::test_a16_a36_a_deleted_topic_of_one_replica_comes_back_by_the_page",
        f"{_KAFKA}/test_adopt_page.py::test_a16_a_deleted_topic_of_two_replicas_comes_back_by_the_page",
    ),
    sizes={"scenarios on releases": Sizes(full=10, ci=2)},
    counted="scenarios on releases",
    needs="Java and Maven",
)
GUIDE: Final = Claim(
    key="restore-by-the-guide",
    text="a deleted topic comes back on a stock broker by the commands of its guide, typed as they stand",
    where=(f"{_KAFKA}/test_guide.py::test_a16_a36_a_deleted_topic_comes_back_by_the_commands_of_the_guide",),
    sizes={"releases": Sizes(full=5, ci=1)},
    counted="releases",
    needs="Java and Maven",
)
STORY: Final = Claim(
    key="undo-story",
    text="the story of the demonstration ends beside a real broker as it is told",
    where=(f"{_KAFKA}/test_demo.py::test_a_deleted_topic_comes_back_beside_a_real_broker",),
    sizes={"stories": Sizes(full=1)},
    counted="stories",
    needs="Java and Maven",
)
_CLIENT: Final = f"{_KAFKA}/test_client.py"
CLIENT: Final = Claim(
    key="client",
    text="the client of a cluster finds, over TLS with SCRAM and PLAIN, what stock clients find on the same brokers",
    where=tests_of(
        _CLIENT,
        "the_cluster_its_brokers_and_the_listener_of_this_client",
        "a_topic_by_its_id_has_the_replicas_and_the_isr_that_a_stock_client_shows",
        "the_log_start_after_records_were_deleted_at_the_leader_and_at_the_follower",
        "the_high_watermark_of_the_quorum_lies_where_a_stock_client_sees_it",
        "log_dirs_are_those_that_a_stock_client_shows",
        "an_id_is_present_hidden_or_gone_for_a_user_with_the_right_to_one_topic",
        "a_user_that_is_let_in_by_scram",
        "a_user_that_is_refused",
        "a_broker_of_another_authority_is_refused",
        "another_protocol_than_that_of_the_listener_ends_in_one_error",
        "a_listener_without_tls_and_without_users",
        "strays_of_a_topic_that_this_user_may_not_see_are_unknown",
    ),
    sizes={"cases on releases": Sizes(full=95, ci=19)},
    counted="cases on releases",
    needs="Java and Maven",
)
_LEARNS: Final = "test_a_node_that_is_no_voter_learns_why_a_replica_was_removed_and_that_an_id_is_gone"
LIVE_CLUSTER: Final = Claim(
    key="live-cluster",
    text="the daemon of a node that is no voter learns from a stock cluster why a replica was removed",
    where=(f"{_KAFKA}/test_live_cluster.py::{_LEARNS}",),
    sizes={"releases": Sizes(full=2, ci=1)},
    counted="releases",
    needs="Java and Maven",
)
BROKER_CLAIMS: Final = (
    UNDO, ADOPTION, GUIDE, DAEMON_DELETIONS, DAEMON_SOAK, DAEMON_STARTS, DAEMON_UNDO, CLIENT, LIVE_CLUSTER, STORY,
)  # fmt: skip
"""In the order of the page."""
