"""What listings and refusals of staged replicas propose: it works when typed, and says what was expected and found."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from logdir.refusal_slug import Why
from tests.builders import partition
from tests.logdir.cluster.log_dir import partition as claimed
from tests.logdir.cluster.log_dir import register, remove, topic
from tests.tools.assignment_rig import ALONE, THREE, Cluster, slugs
from tests.tools.ctl import Said, ctl, ctl_json
from tests.tools.reconcile_rig import GONE, OTHER, PAY, Rig, age, raw
from tools.cli.arguments import Exit

STAGED = f"{PAY}_0"


def without_its_log(cluster: Cluster) -> None:
    """Let the metadata log of the broker be away."""
    shutil.rmtree(cluster.log.directory)


def with_its_configuration(cluster: Cluster) -> Cluster:
    """Let a broker be named by a file that says that it has a metadata log."""
    conf = cluster.rig.folder / "server.properties"
    conf.write_text(f"log.dirs={cluster.rig.disks[0]},{cluster.rig.disks[1]}\nprocess.roles=broker\n")
    cluster.named = ("--server-properties", str(conf))
    return cluster


def why(cluster: Cluster) -> str:
    return str(cluster.item()["detail"])


def purge(cluster: Cluster, *words: object) -> Said:
    return ctl("staged", "purge", "pay-0", *cluster.named, *words)


def test_a_purge_that_an_override_allows_is_never_called_refused(tmp_path: Path) -> None:
    cluster = with_its_configuration(Cluster(tmp_path))
    without_its_log(cluster)
    assert cluster.stage("--even-if-unknown").status == Exit.DONE
    plan = purge(cluster, "--even-if-last")
    assert (plan.status, slugs(plan)) == (Exit.DONE, [])
    said = purge(cluster, "--even-if-last", "--apply")
    assert (said.status, cluster.rig.deleting()) == (Exit.DONE, [])
    assert [why for why in Why if f": {why.value}: " in said.err] == []
    for text in (plan.out, said.err):  # before it is done
        assert f"{cluster.log.directory}: expected the broker's own metadata log" in text


KINDS = {
    "nothing known": (("--even-if-unknown",), True, "--even-if-last"),
    "in sync elsewhere": ((), False, "--from"),
    "not assigned here": ((), False, "--even-if-early"),
    "not assigned here, held": (("--hold",), False, "--even-if-early --include-held"),
}


@pytest.mark.parametrize(("words", "is_before", "named"), KINDS.values(), ids=KINDS)
def test_no_override_is_named_that_does_not_lift_the_refusal(
    words: tuple[str, ...], is_before: bool, named: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    cluster = with_its_configuration(Cluster(tmp_path))
    if "not assigned" in request.node.name:
        cluster.found.clear()
        shutil.rmtree(cluster.log.directory)
        cluster.log = type(cluster.log)(cluster.log.directory)
        cluster.write(cluster.log)
        (cluster.log.directory / "quorum-state").write_text(ALONE)
    if is_before:
        without_its_log(cluster)
    assert cluster.stage(*words).status == Exit.DONE
    if not is_before:
        without_its_log(cluster)
    refused = purge(cluster)
    assert refused.status == Exit.REFUSED
    for text in (why(cluster), refused.err):
        assert named in text
        for other in ("--even-if-early", "--even-if-last", "--even-if-assigned", "--include-held"):
            assert (other in text) == (other in named), text
    if named != "--from":
        assert purge(cluster, *named.split(), "--apply").status == Exit.DONE
        assert cluster.rig.deleting() == []


def removed(folder: Path) -> Rig:
    """Let what the log removed years ago be staged, and be due at once."""
    rig = Rig(folder)
    log = rig.log()
    log.time_ms = 1_650_000_000_000
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    assert rig.reconcile("metadata:", "--delay", "0ms", "--apply").status == Exit.DONE
    return rig


def test_no_negative_number_of_milliseconds_is_a_reason_and_what_was_expected_is_said(tmp_path: Path) -> None:
    rig = removed(tmp_path)
    _, listing = ctl_json("staged", "ls", *rig.named)
    _, purged = ctl_json("staged", "purge", *rig.named, "--apply")
    texts = [str(one["detail"]) for one in listing["items"]] + [str(one["detail"]) for one in purged["items"]]
    assert len(texts) == 4
    for text in texts:
        assert not re.search(r"-\d+ ms", text), text
        assert "10 minutes newer than its staging, found metadata of before its staging; " in text
        assert "--from" in text


def test_what_cannot_be_read_of_the_cluster_says_what_was_expected(tmp_path: Path) -> None:
    cluster = with_its_configuration(Cluster(tmp_path))
    without_its_log(cluster)
    assert cluster.stage("--even-if-unknown").status == Exit.DONE
    assert f"not known: {cluster.log.directory}: expected the broker's own metadata log" in why(cluster)
    assert "none; none" not in why(cluster)


def test_no_reason_is_printed_twice(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    assert why(cluster).count("still assigned here") == 1
    cluster = with_its_configuration(Cluster(tmp_path / "other"))
    assert cluster.stage("--hold").status == Exit.DONE
    without_its_log(cluster)
    parts = [part.strip() for part in why(cluster).split(";")]
    assert len(parts) == len(set(parts))
    assert why(cluster).count(str(cluster.log.directory)) <= 1


def proposed(said: Said) -> list[str]:
    """Return the words of the ``next:`` line."""
    (line,) = (line for line in said.out.splitlines() if line.startswith("next: logdirctl "))
    return shlex.split(line.removeprefix("next: logdirctl "))


def one_of_three(cluster: Cluster) -> None:
    (cluster.log.directory / "quorum-state").write_text(THREE)


def with_a_live_twin(cluster: Cluster) -> None:
    staged = Path(f"{cluster.rig.disks[0]}.logdird/deleting/{STAGED}")
    shutil.copytree(staged, cluster.rig.disks[0] / "pay-0", ignore=shutil.ignore_patterns("replica.json"))


def without_a_disk(cluster: Cluster) -> None:
    cluster.rig.disks[1].rename(cluster.rig.folder / "away")


@pytest.mark.parametrize("meanwhile", [one_of_three, with_a_live_twin, without_a_disk])
def test_no_listing_proposes_a_restore_that_is_refused(meanwhile: Callable[[Cluster], None], tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    words = proposed(ctl("staged", "ls", *cluster.named))
    assert words[:2] == ["staged", "restore"]
    assert ctl(*words).status == Exit.DONE
    meanwhile(cluster)
    assert ctl(*words).status != Exit.DONE
    assert proposed(ctl("staged", "ls", *cluster.named))[:2] != ["staged", "restore"]


def test_what_is_not_known_is_never_listed_as_still_assigned_alone(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    one_of_three(cluster)
    cluster.log.snapshot(register(1), register(2), topic("pay", raw(PAY)), claimed(raw(PAY), 0, (1, 2)))
    assert cluster.stage().status == Exit.DONE
    assert cluster.item()["assigned"] == "unknown"
    assert "not known since offset" in why(cluster)


def test_no_restore_says_that_it_can_go_on_without_a_disk_that_is_away(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    without_a_disk(cluster)
    said = cluster.restore()
    assert (said.status, "--skip-log-dir" in said.err) == (Exit.PROBLEMS, False)
    assert "--skip-log-dir" in ctl("staged", "purge", *cluster.named).err


def test_what_the_staging_limit_holds_back_is_not_proposed_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path).with_removal()
    source = ("--from", f"metadata:{rig.disks[0]}/__cluster_metadata-0")
    for name in ("pay-0", "pay-1"):
        assert ctl("stage", name, *rig.named, *source, "--even-over-limit", "--apply").status == Exit.DONE
    said = rig.reconcile("metadata:")
    assert (said.status, "--even-over-limit" in said.err) == (Exit.REFUSED, True)
    assert proposed(said)[0] != "reconcile"
    assert ctl(*proposed(said)).status == Exit.DONE


@pytest.mark.parametrize("is_early", [False, True])
def test_no_fenced_broker_is_named_as_one_that_has_it_in_sync(is_early: bool, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, isr=(1, 2, 3))
    cluster.log.append(register(3, fenced=True))
    assert cluster.stage().status == Exit.DONE
    text = purge(cluster, "--even-if-early").err if is_early else why(cluster)
    assert "in the ISR of node 2;" in text


def test_a_lost_position_is_named_wherever_it_stands_in_the_way_with_what_lifts_that(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    cluster.log.append(remove(raw(GONE)))
    cluster.rig.snapshot(cluster.log, register(2))
    lost = Path(f"{cluster.rig.disks[1]}.logdird/controller.json")
    lost.unlink()
    reconcile = ("reconcile", "--from", "metadata:", *cluster.named)
    for words in (
        reconcile,
        ("staged", "restore", "pay-0", *cluster.named),
        ("staged", "purge", "pay-0", *cluster.named, "--even-if-early", "--even-if-assigned"),
        ("stage", "pay-1", *cluster.named),
        ("strays", *cluster.named),
    ):
        said = ctl(*words)
        assert (said.status != Exit.DONE, "controller.json" in said.err) == (True, True), words
        assert "reconcile --from URI --even-if-older-metadata --apply" in said.err
        assert proposed(said)[0] not in ("reconcile", words[0]) or proposed(said)[:2] == ["staged", "ls"]
    assert "controller.json" in why(cluster)
    said = ctl(*reconcile, "--even-if-older-metadata", "--even-over-limit", "--apply")
    assert said.status == Exit.DONE
    assert lost.exists()
    assert cluster.restore().status == Exit.DONE


def test_strays_before_any_init_says_init_and_no_option_that_it_lacks(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.log.append(remove(raw(PAY)))
    assert ctl("uninstall", *cluster.named, "--apply").status == Exit.DONE
    said = ctl("strays", *cluster.named)
    assert "logdirctl init" in said.err
    assert "--even-" not in said.err
    assert proposed(said)[0] == "init"
    assert ctl(*proposed(said), "--apply").status == Exit.DONE
    said = ctl("strays", *cluster.named)
    assert proposed(said)[0] == "reconcile"
    assert "--even-" not in said.err or "logdirctl reconcile" in said.err


def test_the_path_of_a_refused_restore_is_where_it_lies_in_its_work_root(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    one_of_three(cluster)
    for words in ((), ("--apply",)):
        _, result = ctl_json("staged", "restore", "pay-0", *cluster.named, *words)
        assert [(one["state"], one["path"]) for one in result["items"]] == [("refused", f"deleting/{STAGED}")]
        assert "items" in result
    said = ctl("uninstall", *cluster.named, "--restore", "--apply")
    assert f"deleting/{STAGED}" in said.out


def test_no_internal_topic_is_refused_without_the_option_that_lifts_it(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    partition(rig.disks[0] / "__transaction_state-0", topic_id=OTHER)
    named = ("stage", "__transaction_state-0", "--even-if-unknown", *rig.named)
    assert "--internal" in ctl(*named).err
    assert ctl(*named, "--internal").status == Exit.DONE
    assert "--internal" not in ctl("stage", "pay-0", "--protect", "pa*", "--even-if-unknown", *rig.named).err
    assert "--protect pa*" in ctl("stage", "pay-0", "--protect", "pa*", "--even-if-unknown", *rig.named).err


def test_no_choice_between_two_copies_is_asked_for_without_the_option_that_makes_it(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    for _ in range(2):
        assert cluster.stage("--even-over-limit").status == Exit.DONE
        age(partition(cluster.rig.disks[0] / "pay-0", topic_id=PAY))
    shutil.rmtree(cluster.rig.disks[0] / "pay-0")
    said = cluster.restore()
    assert (said.status, "--name" in said.err) == (Exit.REFUSED, True)
    assert cluster.restore("--name", f"{STAGED}.2").status == Exit.DONE


@pytest.mark.parametrize("verb", ["restore", "hold", "purge", "export"])
def test_no_broken_marker_is_refused_without_a_way_out(verb: str, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    Path(f"{cluster.rig.disks[0]}.logdird/deleting/{STAGED}/replica.json").write_text("x\n")
    out = tmp_path / "out"
    out.mkdir()
    more = ("-o", out) if verb == "export" else ()
    said = ctl("staged", verb, STAGED, *cluster.named, *more, "--apply")
    assert said.status in (Exit.PROBLEMS, Exit.REFUSED)
    assert "docs/undo.md" in said.err
    assert "docs/undo.md" in ctl("staged", "ls", *cluster.named).err
