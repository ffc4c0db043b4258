"""The proof proves nothing by silence: what is lost, too small or failed is refused, and the page stays."""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.proof.__main__ import main
from tests.proof.claim import Claim
from tests.proof.claims import CLAIMS
from tests.proof.page import Circumstances, circumstances, counts_text, line, render, seeds_text
from tests.proof.plugin import Gatherer, Recorder
from tests.proof.records import (
    FAILED,
    PASSED,
    SKIPPED,
    Outcome,
    Record,
    Run,
    forgive,
    merge,
    read_runs,
    refusals,
    tally,
    write_run,
)
from tests.proof.sizes import Size, Sizes, size_of

ROOT = Path(__file__).parent.parent
FLEETS = Claim(key="fleets", text="plans agree", where=("t.py::test_one",), sizes={"fleets": Sizes(full=300, ci=40)})
PAGES = Claim(key="pages", text="pages fit", where=("p.py::test_page",), counted="pages", needs="Chromium")


def fleet(seed: int, **more: Any) -> Outcome:
    record = Record(claim="fleets", counts={"fleets": 1, "entries": 1000}, seeds=(seed,), **more)
    return Outcome(test=f"t.py::test_one[{seed}]", end=PASSED, records=(record,))


def a_run(*outcomes: Outcome, size: Size = Size.FULL, failed: tuple[str, ...] = (), exit_status: int = 0) -> Run:
    return Run(size=size, exit_status=exit_status, failed=failed, outcomes=outcomes)


def refused(claim: Claim, *runs: Run, full: bool = True) -> list[str]:
    return refusals([tally(claim, merge(runs))], runs, full=full)


FULL = tuple(map(fleet, range(300)))
ENVIRONMENTS = [
    ({}, Size.SAMPLE),
    ({"LOGDIRD_CI": "1"}, Size.CI),
    ({"LOGDIRD_PROOF": "1", "LOGDIRD_CI": "1"}, Size.FULL),
    ({"LOGDIRD_PROOF": "0"}, Size.SAMPLE),
]


@pytest.mark.parametrize(("environ", "size"), ENVIRONMENTS, ids=["none", "ci", "both", "off"])
def test_the_environment_says_the_size(environ: dict[str, str], size: Size) -> None:
    assert size_of(environ) is size


def test_ci_takes_a_tenth_or_more() -> None:
    assert [Sizes(full=300, ci=40, sample=6).at(size) for size in (Size.SAMPLE, Size.CI, Size.FULL)] == [6, 40, 300]
    assert [Sizes(full=11).at(size) for size in (Size.SAMPLE, Size.CI, Size.FULL)] == [2, 2, 11]
    assert Sizes(full=11, ci=5).at(Size.SAMPLE) == 5
    # Of a claim of hours CI takes less, and the claim says how much.
    assert Sizes(full=20_000, ci=500, ci_part=40).at(Size.CI) == 500


@pytest.mark.parametrize(
    "wrong",
    [{"full": 300, "ci": 29}, {"full": 10, "ci": 11}, {"full": 10, "sample": 2}, {"full": 0}, {"full": 9, "sample": 0}],
    ids=["below a tenth", "above the whole", "sample above ci", "nothing", "no sample"],
)
def test_sizes_out_of_order_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="expected 1 <= sample <= ci"):
        Sizes(**wrong)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_every_claim_names_tests_that_are_there(claim: Claim) -> None:
    for where in claim.where:
        path, _, name = where.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
        records = any(argument.arg == "record_proof" for argument in function.args.args)
        assert records or claim.counted


def test_keys_and_texts_of_claims_are_their_own() -> None:
    assert len({claim.key for claim in CLAIMS}) == len({claim.text for claim in CLAIMS}) == len(CLAIMS)
    assert not any("|" in claim.text for claim in CLAIMS)


def test_every_file_with_a_slow_test_has_its_place_in_ci() -> None:
    """What make test leaves out as slow is run by no step that does not name it, and a claim is lost so."""
    _, _, step = (ROOT / ".ci" / "run").read_text().partition("-m slow")
    places = [
        Path(word.partition("::")[0]) for word in step.partition("\nstep ")[0].split() if word.startswith("tests/")
    ]
    mark = "pytest.mark." + "slow"
    slow = [path.relative_to(ROOT) for path in ROOT.glob("tests/**/test_*.py") if mark in path.read_text()]
    assert len(slow) > 20
    assert [str(path) for path in slow if not any(path.is_relative_to(place) for place in places)] == []


def test_records_of_all_tests_are_summed_and_the_lowest_is_kept() -> None:
    shown = tally(
        FLEETS, merge([a_run(fleet(2, least={"contrast": 5.0}), fleet(0, least={"contrast": 4.8}), fleet(1))])
    )
    assert shown.counts == {"fleets": 3, "entries": 3000}
    assert (shown.seeds, shown.least, shown.problems) == ((0, 1, 2), {"contrast": 4.8}, ())
    assert line(shown) == "proof: plans agree: 3 of 300 fleets, 3,000 entries, lowest contrast 4.80, seeds 0 to 2"


def test_a_test_run_twice_counts_once_at_its_last_size() -> None:
    small = Outcome(test="t.py::test_one", end=PASSED, records=(Record(claim="fleets", counts={"fleets": 6}),))
    large = replace(small, records=(Record(claim="fleets", counts={"fleets": 40}),))
    skipped = replace(small, end=SKIPPED, records=())
    assert tally(FLEETS, merge([a_run(small), a_run(large), a_run(skipped)])).counts == {"fleets": 40}


def test_a_test_that_failed_once_has_failed() -> None:
    failed = replace(fleet(1), end=FAILED, records=())
    for runs in ([a_run(failed), a_run(fleet(1))], [a_run(fleet(1)), a_run(failed)]):
        assert tally(FLEETS, merge(runs)).problems == ("t.py::test_one[1] failed",)


def broken(*passed: Outcome, also: tuple[str, ...] = ()) -> Run:
    """Return a run in which the first test of a claim failed."""
    failed = replace(fleet(0), end=FAILED, records=())
    return a_run(failed, *passed, failed=(failed.test, *also), exit_status=1)


def test_what_failed_was_mended_and_passed_counts_if_somebody_says_so() -> None:
    runs = [broken(*FULL[1:]), a_run(fleet(0))]
    assert refused(FLEETS, *runs) == [
        "t.py::test_one[0] failed",
        "fleets: t.py::test_one[0] failed",
        "fleets: 299 of 300 fleets",
    ]
    assert refused(FLEETS, *forgive(runs, ["t.py::test_one[0]"])) == []


@pytest.mark.parametrize(
    ("runs", "test"),
    [
        ([a_run(*FULL)], "t.py::test_one[0]"),
        ([broken(*FULL[1:])], "t.py::test_one[0]"),
        ([a_run(fleet(0)), broken(*FULL[1:])], "t.py::test_one[0]"),
        ([broken(*FULL[1:]), a_run(fleet(0))], "t.py::test_one[1]"),
    ],
    ids=["never failed", "did not pass", "passed before it failed", "another"],
)
def test_nothing_else_is_forgiven(runs: list[Run], test: str) -> None:
    with pytest.raises(ValueError, match="did not fail and then pass"):
        forgive(runs, [test])


def test_a_test_of_no_claim_is_forgiven_once_it_passed() -> None:
    failed = replace(a_run(*FULL), failed=("x.py::test_x",), exit_status=1)
    assert refused(FLEETS, *forgive([failed, replace(a_run(), passed=("x.py::test_x",))], ["x.py::test_x"])) == []
    with pytest.raises(ValueError, match="did not fail and then pass"):
        forgive([failed, a_run()], ["x.py::test_x"])


def test_of_a_run_with_more_failures_only_the_mended_one_is_forgiven() -> None:
    runs = forgive([broken(*FULL[1:], also=("x.py::test_x",)), a_run(fleet(0))], ["t.py::test_one[0]"])
    assert refused(FLEETS, *runs) == ["x.py::test_x failed"]
    interrupted = [replace(broken(*FULL[1:]), exit_status=2), a_run(fleet(0))]
    assert refused(FLEETS, *forgive(interrupted, ["t.py::test_one[0]"])) == ["a run ended with exit status 2"]


def test_the_page_names_what_failed_at_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, runs = tmp_path / "proof.md", tmp_path / "runs"
    runs.mkdir()
    whole = everything()
    first = whole.outcomes[0]
    failed = replace(first, end=FAILED, records=())
    write_run(
        replace(whole, outcomes=(failed, *whole.outcomes[1:]), failed=(first.test,), exit_status=1), runs / "1.json"
    )
    asked = [str(runs), "--mended", first.test, "-o", str(page)]
    assert main(asked) == 1
    assert capsys.readouterr().err == f"no proof: {first.test} did not fail and then pass\n"
    write_run(a_run(first), runs / "2.json")
    assert main([*asked[:1], *asked[3:]]) == 1
    assert not page.exists()
    assert main(asked) == 0
    assert "in which no test failed but these.\n" in page.read_text()
    assert f"\n- failed, mended and run again: `{first.test}`\n" in page.read_text()


def test_all_of_it_and_nothing_failed_is_proof() -> None:
    assert refused(FLEETS, a_run(*map(fleet, range(100))), a_run(*map(fleet, range(100, 300)))) == []


NO_PROOF = {
    "no run": ((), "no run was recorded"),
    "claim missing": ((a_run(),), "fleets: t.py::test_one did not run"),
    "too few": ((a_run(*FULL[1:]),), "fleets: 299 of 300 fleets"),
    "another claim's test failed": ((a_run(*FULL, failed=("x.py::test_x",), exit_status=1),), "x.py::test_x failed"),
    "interrupted": ((a_run(*FULL, exit_status=2),), "a run ended with exit status 2"),
    "smaller size": ((a_run(*FULL, size=Size.CI),), "a run was of size ci, not full"),
    "silent": ((a_run(*FULL, replace(fleet(300), records=())),), "fleets: t.py::test_one[300] recorded nothing"),
    "skipped": ((a_run(*FULL, replace(fleet(300), end=SKIPPED, records=())),), "fleets: t.py::test_one[300] skipped"),
    "violated": ((a_run(*FULL[1:], fleet(0, violations=2)),), "fleets: 2 violations"),
}


@pytest.mark.parametrize(("runs", "reason"), NO_PROOF.values(), ids=NO_PROOF.keys())
def test_what_is_no_proof_is_refused(runs: tuple[Run, ...], reason: str) -> None:
    assert reason in refused(FLEETS, *runs)


def test_more_than_was_asked_for_is_proof() -> None:
    assert refused(FLEETS, a_run(*FULL, fleet(300))) == []


def test_ci_asks_for_a_tenth() -> None:
    assert refused(FLEETS, a_run(*FULL[:30], size=Size.CI), full=False) == []
    assert refused(FLEETS, a_run(*FULL[:29], size=Size.CI), full=False) == ["fleets: 29 of 300 fleets"]


def test_what_a_machine_lacks_is_said_and_ci_may_lack_nothing() -> None:
    skipped = Outcome(test="p.py::test_page[a]", end=SKIPPED, reason="needs Chromium in /opt")
    assert refused(PAGES, a_run(skipped)) == []
    assert refused(PAGES, a_run(skipped), full=False) == ["pages: not run: needs Chromium"]
    assert line(tally(PAGES, merge([a_run(skipped)]))) == "proof: pages fit: not run: needs Chromium"
    drawn = Outcome(test="p.py::test_page[b]", end=PASSED)
    assert refused(PAGES, a_run(skipped, drawn)) == ["pages: p.py::test_page[a] skipped"]
    assert tally(PAGES, merge([a_run(drawn)])).counts == {"pages": 1}


@pytest.mark.parametrize(
    ("seeds", "text"),
    [([7], "seed 7"), ([0, 1], "seeds 0 to 1"), ([1, 3, 4, 5, 9], "seeds 1, 3 to 5, 9")],
    ids=["one", "two", "several"],
)
def test_seeds_in_few_words(seeds: list[int], text: str) -> None:
    assert seeds_text(seeds) == text


ABOUT = Circumstances(
    date="2031-02-03 04:05 UTC",
    logdird="1.2.3",
    python="3.11.2",
    spark="4.3.1",
    kafka=("3.9.2", "4.3.1"),
    trees=("2.8.2-zk",),
    kernel="Linux 6.1.0",
    machine="x86_64",
)


def test_the_page_says_what_was_counted_and_what_was_not_run() -> None:
    skipped = Outcome(test="p.py::test_page", end=SKIPPED)
    outcomes = merge([a_run(*FULL, skipped)])
    page = render([tally(FLEETS, outcomes), tally(PAGES, outcomes)], ABOUT)
    assert "\n| plans agree | 300 fleets, 300,000 entries | 0 to 299 | 0 |\n" in page
    assert "\n| pages fit | not run: needs Chromium |  |  |\n" in page
    assert "What was not run is not shown" in page
    assert "Never edit it by hand" in page
    for fact in ("2031-02-03 04:05 UTC", "1.2.3", "3.11.2", "3.9.2, 4.3.1", "2.8.2-zk", "Linux 6.1.0", "make proof"):
        assert fact in page


def test_circumstances_name_no_machine() -> None:
    about = circumstances(datetime(2031, 2, 3, 1, 0, tzinfo=timezone(timedelta(hours=2))))
    assert about.date == "2031-02-02 23:00 UTC"
    assert set(about.kernel.split()[1]) <= set("0123456789.")
    page = render([], about)
    assert str(ROOT) not in page
    assert not platform.node() or platform.node() not in page.split()


def everything() -> Run:
    """A full run that shows every claim."""
    outcomes = []
    for claim in CLAIMS:
        counts = {label: sizes.full for label, sizes in claim.sizes.items()} or {"cases": 1}
        for number, where in enumerate(claim.where):
            record = Record(claim=claim.key, counts={} if number else counts)
            outcomes.append(Outcome(test=where, end=PASSED, records=(record,)))
    return a_run(*outcomes)


def test_the_page_is_written_only_for_a_whole_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "proof.md"
    page.write_text("what stood here")
    runs = tmp_path / "runs"
    runs.mkdir()
    whole = everything()
    lost = whole.outcomes[-1]
    write_run(replace(whole, outcomes=whole.outcomes[:-1]), runs / "1.json")
    assert main([str(runs), "-o", str(page)]) == 1
    assert page.read_text() == "what stood here"
    assert f"no proof: {CLAIMS[-1].key}: {lost.test} did not run\n" in capsys.readouterr().err
    write_run(a_run(lost), runs / "2.json")
    assert main([str(runs), "-o", str(page)]) == 0
    assert all(f"\n| {claim.text} | " in page.read_text() for claim in CLAIMS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["proof.md", "runs"]
    assert capsys.readouterr().err == ""


def test_what_is_only_tasted_is_listed_for_ci_to_run_at_its_own_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--larger"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed == sorted(set(listed))
    for claim in CLAIMS:
        tasted = any(sizes.at(Size.SAMPLE) < sizes.at(Size.CI) for sizes in claim.sizes.values())
        assert set(claim.where) <= set(listed) or not tasted or claim.needs
    assert not {where for claim in CLAIMS if claim.needs for where in claim.where} & set(listed)


def test_without_a_folder_there_is_nothing_to_judge(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "expected a folder of runs" in capsys.readouterr().err


def test_a_run_reads_back_as_it_was_written(tmp_path: Path) -> None:
    run = a_run(fleet(3, least={"contrast": 4.5}), Outcome(test="x", end=SKIPPED, reason="no é"), failed=("y",))
    write_run(run, tmp_path / "1.json")
    assert read_runs(tmp_path) == [run]


def test_the_runs_of_parts_are_read_too_in_the_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "hung").mkdir()
    (tmp_path / "browser").mkdir()
    former, later = a_run(failed=("y",), exit_status=1), a_run(fleet(3))
    write_run(former, tmp_path / "hung" / "1.json")
    write_run(later, tmp_path / "browser" / "2.json")
    assert read_runs(tmp_path) == [former, later]


PARTS = {"brokers", "long", "others", "hung", "kernel", "root", "browser", "mounts", "deletions"}
STUB = """#!/bin/sh
case "$*" in
*kafka.rotation*) echo 4.3.1 ;;
*tests.proof*) echo tests.proof >>ran ;;
*pytest*)
    echo "${LOGDIRD_PROOF_OUT#.proof/} $LOGDIRD_PROOF" >>ran
    [ ! -e "fails-${LOGDIRD_PROOF_OUT#.proof/}" ]
    ;;
esac
"""


def test_a_proof_that_was_cut_off_goes_on_with_the_parts_that_have_not_passed(tmp_path: Path) -> None:
    """In a project whose Python only writes down which parts ran, and fails those that are to fail."""
    for name in ("logdir", "migrate", "scheduler", "tools", "tests", "examples", "systemd", ".ci", ".venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("pyproject.toml", "setup.py", "logdir/module.py"):
        (tmp_path / name).write_text("")
    for name, text in ((".venv/bin/python", STUB), (".ci/as-user", '#!/bin/sh\nexec "$@"\n')):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def proof() -> tuple[int, list[str]]:
        (tmp_path / "ran").write_text("")
        done = subprocess.run(
            ["sh", tmp_path / ".ci" / "proof", ".proof"], cwd=tmp_path, capture_output=True, text=True
        )
        return done.returncode, sorted((tmp_path / "ran").read_text().splitlines())

    (tmp_path / ".ci" / "proof").write_bytes((ROOT / ".ci" / "proof").read_bytes())
    everything = sorted(f"{part} 1" for part in PARTS)
    for part in ("kernel", "brokers"):
        (tmp_path / f"fails-{part}").touch()
    assert proof() == (1, everything)
    assert proof() == (1, ["brokers 1", "kernel 1"])
    (tmp_path / "fails-brokers").unlink()
    assert proof() == (1, ["brokers 1", "kernel 1"])
    (tmp_path / "fails-kernel").unlink()
    assert proof() == (0, ["kernel 1", "tests.proof"])
    assert proof() == (0, ["tests.proof"])
    (tmp_path / "logdir/module.py").write_text("changed\n")
    assert proof() == (0, sorted([*everything, "tests.proof"]))


def test_a_test_records_only_its_own_claims(request: pytest.FixtureRequest) -> None:
    with pytest.raises(ValueError, match="expected a test of the claim fleets; found tests/test_proof"):
        Recorder(request.node)(FLEETS, {"fleets": 1})


def test_a_failure_after_the_call_is_a_failure() -> None:
    test = CLAIMS[0].where[0]
    gatherer = Gatherer(None)
    said: list[tuple[str, object]] = [("proof", Record(claim=CLAIMS[0].key, counts={"names": 1}).to_json())]
    call = pytest.TestReport(
        nodeid=test,
        location=("", 0, ""),
        keywords={},
        outcome="passed",
        longrepr=None,
        when="call",
        user_properties=said,
    )
    gatherer.pytest_runtest_logreport(call)
    assert [outcome.end for outcome in gatherer.run(0).outcomes] == [PASSED]
    call.when, call.outcome = "teardown", "failed"
    gatherer.pytest_runtest_logreport(call)
    run = gatherer.run(1)
    assert run.failed == (test,)
    assert [(outcome.test, outcome.end) for outcome in run.outcomes] == [(test, FAILED)]


def test_a_run_that_began_before_another_and_ended_after_it_comes_first(tmp_path: Path) -> None:
    """What failed in a long run is mended and run again while that run goes on."""
    long, again = Gatherer(tmp_path), Gatherer(tmp_path)
    again.pytest_sessionfinish(0)
    long.pytest_sessionfinish(1)
    assert [run.exit_status for run in read_runs(tmp_path)] == [1, 0]


def test_two_workers_records_meet_in_one_run(tmp_path: Path) -> None:
    """A real run of two claims' tests over two workers."""
    tests = "tests/migrate/test_waves.py::test_order_and_repetition_change_nothing"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "LOGDIRD_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", "--basetemp", tmp_path / "base", tests],
        cwd=ROOT,
        env={**kept, "LOGDIRD_CI": "1", "LOGDIRD_PROOF_OUT": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = "order and repetition of brokers and partitions change no wave: 80 shuffled fleets, seeds 0 to 39"
    assert f"\nproof: {said}\n" in done.stdout
    assert "proof, size ci" in done.stdout
    (run,) = read_runs(tmp_path)
    assert (run.size, run.exit_status, run.failed) == (Size.CI, 0, ())
    assert sorted(outcome.test for outcome in run.outcomes) == [f"{tests}[racks-{w}]" for w in ("ignored", "respected")]
    claim = next(claim for claim in CLAIMS if claim.key == "waves-in-any-order")
    assert counts_text(tally(claim, merge([run]))) == "80 shuffled fleets"
