"""What the proof claims of the daemon where no broker runs: sick disks, pressure, requests, users, and its client.

Not here: what it claims of the daemon beside stock brokers (``kafka_claims``).

Spec: design §2 law 6, §3.3, §4, §5; KIP-516; attacks A14, A25, A26, A40, A49, A50.
"""

from __future__ import annotations

from typing import Final

from tests.proof.claim import Claim, tests_of
from tests.proof.sizes import Sizes

_HUNG: Final = "tests/hung"
_LOOP: Final = "root, loop devices, FUSE"
HUNG_DAEMON: Final = Claim(
    key="daemon-hung-disks",
    text="a daemon beside a disk that hangs or is frozen captures, purges, holds on the others, answers, takes it back",
    where=(
        f"{_HUNG}/test_daemon.py::test_a49_a_daemon_starts_beside_a_disk_whose_reads_hang_and_takes_it_back",
        f"{_HUNG}/test_daemon.py::test_a40_a49_a_disk_that_freezes_amid_the_work_harms_no_other_and_nothing_late",
        f"{_HUNG}/test_daemon.py::test_a40_a_configuration_read_again_does_not_open_a_disk_whose_worker_still_hangs",
    ),
    sizes={"disks": Sizes(full=3, ci=3)},
    counted="disks",
    needs=_LOOP,
)
SICK_DAEMON: Final = Claim(
    key="daemon-sick-disks",
    text="so does one whose disk is full, read-only, unmounted, swapped, an old copy, or is released, made again",
    where=(
        f"{_HUNG}/test_daemon_disks.py::test_a10_a_disk_that_fills_up_keeps_nothing_and_the_others_do",
        f"{_HUNG}/test_daemon_disks.py::test_a_disk_that_turns_read_only_is_named_and_the_others_go_on",
        f"{_HUNG}/test_daemon_disks.py::test_a_disk_that_is_remounted_read_only_is_taken_back_when_it_can_be_written",
        f"{_HUNG}/test_daemon_disks.py::test_a26_a_disk_that_is_unmounted_under_the_daemon_gets_nothing_in_its_place",
        f"{_HUNG}/test_daemon_disks.py::test_a25_another_disk_in_its_place_is_not_taken_for_it",
        *tests_of(
            f"{_HUNG}/test_daemon_swapped.py",
            "a25_an_old_copy_of_a_disk_in_its_place_is_left_as_it_is_until_it_is_accepted",
            "a25_the_disk_itself_is_taken_back_after_an_old_copy_of_it",
            "a25_two_disks_of_one_broker_in_each_others_place_are_worked_on_as_before",
        ),
        f"{_HUNG}/test_release.py::test_a_disk_is_unmounted_made_again_mounted_and_taken_back_while_the_others_capture",
    ),
    sizes={"disks": Sizes(full=9, ci=9)},
    counted="disks",
    needs=_LOOP,
)
_PRESSURE: Final = "tests/kernel/test_pressure.py"
PRESSURE: Final = Claim(
    key="daemon-pressure",
    text="of 20 captures that their broker removed and 20 that it still has only as many go as bring the floor back",
    where=(
        f"{_PRESSURE}::test_a14_a50_only_as_many_go_as_bring_the_floor_back",
        f"{_PRESSURE}::test_a50_what_its_broker_still_has_stays_and_nothing_new_is_captured",
        f"{_PRESSURE}::test_hold_keeps_every_capture",
    ),
    sizes={"nearly full disks": Sizes(full=4, ci=4)},
    counted="nearly full disks",
    needs="root, loop devices, e2fsprogs, xfsprogs",
)
_KIP_516: Final = "tests/logdir/daemon/test_kip516.py"
_ANSWERS: Final = "tests/logdir/daemon/test_kip516_answers.py"
REQUESTS: Final = Claim(
    key="daemon-kip-516",
    text="by inbox and socket, what LeaderAndIsr FULL leaves out and StopReplica names is staged with a warning and a "
    "deadline, and purged then, a restart meanwhile or not; what INCREMENTAL shows with another id, which proves no "
    "removal, is staged with a warning and held; each request is answered with Kafka's code",
    where=(
        f"{_KIP_516}::test_kip516_a_request_stages_warns_keeps_its_deadline_over_a_restart_and_is_purged",
        f"{_KIP_516}::test_kip516_the_rules_of_requests_hold_through_the_daemon",
        f"{_ANSWERS}::test_kip516_each_request_is_answered_with_its_code",
        f"{_ANSWERS}::test_two_instructions_for_one_partition_in_a_request_are_an_error_for_both",
        f"{_ANSWERS}::test_of_two_documents_for_one_replica_in_one_batch_each_counts_in_its_order",
    ),
    sizes={"kinds and ways": Sizes(full=13, ci=13)},
    counted="kinds and ways",
)
_CONTROL: Final = "tests/logdir/daemon/test_control.py"
SLOW_CLIENTS: Final = Claim(
    key="daemon-slow-clients",
    text="a hundred clients that send a byte a minute hold up no request, no look at the status and no capture",
    where=(f"{_CONTROL}::test_a_hundred_clients_that_send_a_byte_a_minute_hold_up_nobody",),
    sizes={"seconds": Sizes(full=130, ci=13, sample=3)},
)
BAD_REQUESTS: Final = Claim(
    key="daemon-bad-requests",
    text="a malformed request gets a typed answer, and a client that leaves is no fault",
    where=(
        f"{_CONTROL}::test_bad_input_gets_a_typed_answer",
        f"{_CONTROL}::test_a_client_that_leaves_is_no_fault",
    ),
    sizes={"cases": Sizes(full=28, ci=28)},
    counted="cases",
)
_INBOX_USERS: Final = "tests/logdir/daemon/test_inbox_users.py"
OTHER_USERS: Final = Claim(
    key="daemon-other-users",
    text="a user of the socket's group without the right reads the status and changes nothing, by no use case and no "
    "document: one that another user could have written is not followed",
    where=(
        f"{_CONTROL}::test_a_user_without_the_right_reads_the_status_and_changes_nothing",
        f"{_INBOX_USERS}::test_another_user_of_the_same_group_can_do_nothing_in_the_inbox",
        f"{_INBOX_USERS}::test_a_document_that_another_user_could_have_written_is_never_followed",
    ),
    sizes={
        "use cases": Sizes(full=11, ci=11),
        "attempts at the inbox": Sizes(full=13, ci=13),
        "documents and inboxes": Sizes(full=7, ci=7),
    },
    needs="root",
)
_CLIENT: Final = "tests/logdir/wire/client"
LYING_SERVERS: Final = Claim(
    key="client-lying-servers",
    text="a server that lies, stalls, cuts off or is not there ends the client's question in a typed error, in time",
    where=(
        *tests_of(
            f"{_CLIENT}/test_client.py",
            "a_server_that_lies",
            "a_server_with_other_versions",
            "a_server_that_stalls",
            "a_server_that_is_not_there",
            "a_host_name_that_does_not_exist",
            "a_broker_that_advertises_no_host",
            "a_broker_that_advertises_no_port",
            "another_answer_that_is_none",
            "a_scram_server_that_lies",
            "a_server_that_closes_while_it_is_asked_leaves_no_thread_and_no_open_connection",
        ),
        f"{_CLIENT}/test_tls.py::test_a_server_that_stalls_in_the_handshake",
    ),
    sizes={"servers": Sizes(full=61, ci=61)},
    counted="servers",
)
DAEMON_CLAIMS: Final = (
    HUNG_DAEMON,
    SICK_DAEMON,
    PRESSURE,
    REQUESTS,
    SLOW_CLIENTS,
    BAD_REQUESTS,
    OTHER_USERS,
    LYING_SERVERS,
)
"""In the order of the page."""
