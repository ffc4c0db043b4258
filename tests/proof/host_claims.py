"""What the proof claims of the daemon at home on a host: its units, the gate, containers, upgrades, alarms.

Not here: what it claims of the daemon's work (``daemon_claims``, ``kafka_claims``).

Spec: design §5, §6, §8; attacks A05, A06, A11, A17, A22, A24, A30, A32.
"""

from __future__ import annotations

from typing import Final

from tests.proof.claim import Claim, tests_of
from tests.proof.sizes import Sizes

UNITS: Final = Claim(
    key="host-units",
    text="under a systemd of their own the units start in order, are ready, watched, read again and stopped beside a "
    "hung worker; in their sandbox a gap is credited, files are chowned, leased, linked, and nothing else is allowed",
    where=(
        *tests_of(
            "tests/systemd/test_units.py",
            "a22_recovery_comes_first_then_the_daemon_then_the_gate_then_the_broker",
            "a22_recovery_alone_ends_what_was_cut_off_and_the_daemon_pulls_it_in",
            "logdird_of_another_user_takes_no_socket_away",
            "the_daemon_has_no_rights_and_its_socket_is_of_the_group",
            "a_daemon_that_hangs_is_started_again_by_the_watchdog",
            "a_reload_takes_the_new_configuration_or_keeps_the_former_and_says_so",
            "the_gate_works_by_itself_where_no_daemon_runs",
            "without_one_of_its_disks_only_the_way_round_the_gate_starts_the_broker",
            "a_page_gets_its_socket_from_systemd_and_ends_with_the_daemon",
        ),
        *tests_of(
            "tests/systemd/test_disks.py",
            "a06_a_disk_that_is_unmounted_on_the_host_is_unmounted_for_the_daemon_and_another_one_comes",
            "a_stop_waits_for_no_worker_that_hangs_and_the_next_start_serves_the_others",
            "the_gate_ends_in_time_beside_a_disk_that_hangs",
        ),
        *tests_of(
            "tests/systemd/test_sandbox.py",
            "a06_a24_what_is_needed_is_allowed_and_nothing_else",
            "a_deleted_replica_is_captured_and_a_staged_one_comes_back",
            "a24_a_gap_between_two_boots_is_credited",
        ),
        "tests/systemd/test_install_page.py::test_what_the_page_says_is_typed_from_the_first_line_to_the_removal",
    ),
    sizes={"scenarios": Sizes(full=17, ci=17)},
    counted="scenarios",
    needs="root, systemd, FUSE",
)
GATE: Final = Claim(
    key="host-gate",
    text="a stock broker starts through the gate over what a kill left, amid a batch of its daemon, and without one; a "
    "checkpoint file that a failed start emptied is noticed at the next one, and comes back",
    where=tests_of(
        "tests/kafka/test_gate.py",
        "a11_a_broker_starts_over_what_a_kill_left",
        "a22_a_broker_starts_whatever_its_daemon_is_at",
        "a30_a_checkpoint_file_that_a_failed_start_emptied_is_noticed_at_the_next_one",
    ),
    sizes={"scenarios on releases": Sizes(full=15, ci=3)},
    counted="scenarios on releases",
    needs="Java and Maven",
)
HUNG_GATE: Final = Claim(
    key="host-gate-hung",
    text="beside a disk that hangs, with a daemon or without, the gate ends in time, by the name of the disk",
    where=tests_of(
        "tests/hung/test_gate.py",
        "a22_it_is_refused_by_the_name_of_the_disk_and_passed_without_it_in_time",
        "the_way_round_it_asks_no_disk",
        "a22_a_daemon_whose_disk_hangs_answers_the_gate_in_time",
    ),
    sizes={"scenarios": Sizes(full=5, ci=5)},
    counted="scenarios",
    needs="root, loop devices, FUSE",
)
CONTAINERS: Final = Claim(
    key="host-containers",
    text="between two containers that share log dirs, locks, leases and links hold, and the recipe with init container "
    "and sidecar starts a broker; what cannot work there is refused by name",
    where=tests_of(
        "tests/containers/test_containers.py",
        "a32_the_lock_of_a_broker_in_another_container_holds_and_its_holder_is_outside",
        "a32_two_of_ours_in_two_containers_never_work_in_one_work_root",
        "a32_a_lock_of_either_kind_is_seen_in_another_container",
        "a17_a_lease_sees_a_file_that_is_open_in_another_container",
        "a_file_of_one_container_gets_a_second_name_by_another",
        "a22_the_recipe_init_container_then_broker_and_sidecar",
        "a22_an_init_container_keeps_a_broker_from_its_start_where_a_disk_is_missing",
        "a05_a_volume_mounted_at_the_log_dir_has_its_work_root_within",
        "a06_log_dir_and_work_root_in_two_volumes_are_refused_by_name",
        "what_another_user_wrote_is_neither_linked_nor_leased_nor_handed_over",
    ),
    sizes={"scenarios": Sizes(full=11, ci=11)},
    counted="scenarios",
    needs="root",
)
UPGRADES: Final = Claim(
    key="host-upgrades",
    text="what 0.2.0 left staged, held, cut off, half purged, half adopted or amid a change of layout is finished in "
    "an upgraded work root, and its wheel refuses that by name",
    where=(
        *tests_of(
            "tests/releases/test_releases.py",
            "what_was_staged_held_cut_off_and_half_purged_is_listed_as_such",
            "a_half_purged_replica_goes_and_an_unfinished_capture_is_finished",
            "an_adoption_that_was_certain_is_finished",
            "a_change_of_layout_that_was_cut_off_is_shown_and_rolled_back",
            "the_first_change_upgrades_the_work_root_and_says_what_is_kept_and_where",
            "what_is_staged_held_cut_off_and_half_purged_is_finished_in_an_upgraded_work_root",
            "an_adoption_that_was_certain_is_finished_by_the_gate_that_upgrades",
            "a_start_block_stands_over_the_upgrade_until_the_rollback_is_done",
            "a_command_that_only_reads_upgrades_nothing",
        ),
        *tests_of(
            "tests/releases/test_downgrade.py",
            "what_is_staged_incoming_and_half_purged_is_refused_by_the_older_release_and_finished_by_the_newer",
            "a_half_done_adoption_is_refused_by_the_older_release_and_finished_by_the_newer",
            "a_start_block_is_refused_by_the_older_release_rolled_back_by_the_newer_and_the_way_back_is_open",
        ),
    ),
    sizes={"scenarios": Sizes(full=13, ci=13)},
    counted="scenarios",
)
_TYPED: Final = "tests/test_operations_page.py"
RUNBOOKS: Final = Claim(
    key="host-runbooks",
    text="typed as it stands, docs/operations.md does what it says",
    where=(
        *tests_of(
            _TYPED,
            "a_deletion_of_a_broker_that_has_stopped_is_kept",
            "a25_a_disk_that_was_away_is_accepted_after_a_look",
            "a17_a_time_without_a_look_is_named_and_counted_anew",
            "a_purge_is_stopped_and_goes_on",
            "what_goes_too_early_is_held_and_a_purge_says_why_it_stays",
            "the_configuration_is_changed_and_one_that_does_not_fit_is_corrected",
            "the_daemon_is_upgraded_beside_its_broker",
            "the_gate_says_why_a_broker_is_not_started_and_is_passed_by_its_one_way_round",
            "a30_log_starts_that_a_failed_start_lost_are_written_back",
            "a_log_dir_without_a_watch_is_named",
            "a_file_that_lies_in_the_place_of_the_metrics_is_named_and_moved_away",
            "a_report_of_a_fault_is_written_and_listed",
        ),
        *tests_of(
            "tests/hung/test_operations_page.py",
            "a_dead_disk_is_replaced_beside_the_daemon",
            "a_disk_that_hangs_is_named_let_go_and_taken_back",
        ),
        *tests_of(
            "tests/kafka/test_operations_page.py",
            "a16_a_deleted_topic_comes_back_and_one_that_is_not_wanted_frees_its_space",
            "kafka_is_upgraded_beside_the_daemon_and_what_is_staged_comes_back_on_the_new_release",
        ),
    ),
    sizes={"runs of a runbook": Sizes(full=18, ci=16)},
    counted="runs of a runbook",
    needs="root, loop devices, FUSE, Java and Maven",
)
_RULES: Final = "tests/test_monitoring_rules.py"
ALERTS: Final = Claim(
    key="host-alerts",
    text="every alert fires after its time where its cause is there, ends with it, and not without need; every query "
    "of the dashboard shows something",
    where=(
        *tests_of(
            _RULES,
            "an_alert_fires_after_its_time",
            "an_alert_does_not_fire_without_need",
            "an_alert_ends",
            "on_a_healthy_daemon_nothing_is_found",
        ),
        "tests/test_monitoring_dashboard.py::test_each_query_shows_something",
    ),
    sizes={"cases": Sizes(full=223, ci=223)},
    counted="cases",
)
STATUS_PAGE: Final = Claim(
    key="host-status-page",
    text="the status page fits its window, can be read in light and dark, narrow and wide, and shows every number as "
    "it is; hostile names are text",
    where=tests_of(
        "tests/browser/test_status_page.py",
        "page_fits_and_can_be_read",
        "every_number_reads_as_its_value",
        "hostile_names_are_text",
    ),
    sizes={"pages": Sizes(full=26, ci=26)},
    counted="pages",
    needs="Chromium",
)
HOST_CLAIMS: Final = (UNITS, GATE, HUNG_GATE, CONTAINERS, UPGRADES, RUNBOOKS, ALERTS, STATUS_PAGE)
"""In the order of the page."""
