"""The drop-ins of a host: what each says, and what none says.

Spec: design §2 laws 5, 6; attacks A6, A22.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from logdir.service.systemd.drop_ins import Facts, drop_ins, may_be_there, shown

FACTS = Facts(
    name="b1",
    unit="kafka.service",
    programs="/opt/logdird/bin",
    user="kafka",
    group="hadoop",
    log_dirs=("/data/d1/kafka", "/data/d 2/kafka"),
    writable=("/data/d1", "/data/d 2"),
    needed=("/var/lib/logdird/b1",),
    reads_homes=False,
    has_client=False,
)
TOP = "etc/systemd/system"
RECOVER = f"{TOP}/logdird-recover@b1.service.d/50-logdirctl.conf"
DAEMON = f"{TOP}/logdird@b1.service.d/50-logdirctl.conf"
GATE = f"{TOP}/kafka.service.d/50-logdird-b1.conf"


def settings(text: str, key: str) -> list[str]:
    """Return the words of a setting, of all its lines."""
    lines = [line.removeprefix(f"{key}=") for line in text.splitlines() if line.startswith(f"{key}=")]
    return [word for line in lines for word in shlex.split(line)]


def test_without_more_there_are_three() -> None:
    assert list(drop_ins(FACTS)) == [RECOVER, DAEMON, GATE]
    assert list(drop_ins(replace(FACTS, unit=None))) == [RECOVER, DAEMON]


@pytest.mark.parametrize("path", [RECOVER, DAEMON])
def test_a06_each_disk_is_one_path_that_need_not_be_there(path: str) -> None:
    text = drop_ins(FACTS)[path]
    assert settings(text, "ReadWritePaths") == ["-/data/d1", "-/data/d 2"]
    assert (settings(text, "User"), settings(text, "Group")) == (["kafka"], ["hadoop"])


def test_a_dead_disk_keeps_neither_the_daemon_nor_the_broker_from_its_start() -> None:
    found = drop_ins(FACTS)
    assert settings(found[RECOVER], "RequiresMountsFor") == [*FACTS.needed, *FACTS.log_dirs]
    assert settings(found[DAEMON], "RequiresMountsFor") == list(FACTS.needed)
    for text in found.values():
        assert "Requires=" not in text
        assert "BindsTo=" not in text
    # The broker waits for the disks by way of what it comes after, and its gate names the one that is lacking.
    assert settings(found[GATE], "RequiresMountsFor") == []


def test_a22_the_broker_comes_after_recovery_and_daemon_and_its_gate_has_one_way_round() -> None:
    text = drop_ins(FACTS)[GATE]
    ours = ["logdird-recover@b1.service", "logdird@b1.service"]
    assert settings(text, "After") == settings(text, "Wants") == ours
    assert settings(text, "ExecStartPre")[-5:] == [
        "/opt/logdird/bin/logdirctl", "handover", "--quiet", "--config", "/etc/logdird/b1.yaml",
    ]  # fmt: skip
    assert "systemctl set-environment LOGDIRD_SKIP_GATE=1" in text


def test_a_program_in_a_directory_of_a_hostile_name_is_one_word() -> None:
    text = drop_ins(replace(FACTS, programs='/o p/"50%"/$x'))[GATE]
    assert settings(text, "ExecStartPre")[-5] == '/o p/"50%%"/$$x/logdirctl'


def test_what_is_asked_for_is_added_and_nothing_else() -> None:
    asked = replace(
        FACTS,
        has_client=True,
        groups=("kafka", "50"),
        reads_homes=True,
        status_listen=("::1", 9470),
        metrics_listen=("10.0.0.1", 9471),
    )
    found = drop_ins(asked)
    client, status, metrics = may_be_there("b1")
    assert set(found) == {RECOVER, DAEMON, GATE, client, status, metrics}
    assert settings(found[client], "RestrictAddressFamilies") == ["AF_INET", "AF_INET6"]
    assert "PrivateNetwork=no" in found[client]
    assert settings(found[status], "ListenStream") == ["[::1]:9470"]
    assert "IPAddressAllow" not in found[status]
    assert settings(found[metrics], "ListenStream") == ["10.0.0.1:9471"]
    # An empty value takes back that of the unit, which lets only this host in.
    assert {"ListenStream=", "IPAddressDeny=", "IPAddressAllow="} <= set(found[metrics].splitlines())
    assert settings(found[DAEMON], "Wants") == ["logdird-status@b1.socket", "logdird-metrics@b1.socket"]
    assert settings(found[DAEMON], "SupplementaryGroups") == ["kafka", "50"]
    assert "ProtectHome=read-only" in found[DAEMON]
    assert "ProtectHome" not in drop_ins(FACTS)[DAEMON]


def test_an_owner_that_is_not_known_is_left_to_the_unit() -> None:
    text = drop_ins(replace(FACTS, user=None, group=None))[DAEMON]
    assert "User=" not in text
    assert "Group" not in text


def test_people_are_shown_each_file_below_its_path() -> None:
    assert list(shown({"/a": "[Unit]\n\nAfter=b\n"})) == ["/a:", "    [Unit]", "", "    After=b"]
