"""The report as a reader meets it: drawn in headless Chromium, light and dark, narrow and wide."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logdir.markup import duration, grouped, size
from migrate.report.page import render_report
from migrate.report.words import ratio
from tests.browser.chromium import NAMES, Page, chromium, find
from tests.migrate.plan_builder import HOSTILE, HOSTILE_PLAN, LARGE, LARGE_SINGLE, SMALL, TINY, build_plan
from tests.proof.claims import CONTRAST, FIGURES
from tests.proof.plugin import Recorder

pytestmark = pytest.mark.browser

SHAPES = {
    "tiny": TINY,
    "small": SMALL,
    "large": LARGE,
    "large-single": LARGE_SINGLE,
    "hostile": HOSTILE_PLAN,
}
CHECKS = Path(__file__).with_name("page_checks.js").read_text(encoding="utf-8")
FOCUSABLE = 'a[href], button, input, summary, [tabindex]:not([tabindex="-1"])'


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    program = find()
    if program is None:
        pytest.skip(f"needs Chromium: install one of {', '.join(NAMES)}")
    with chromium(program) as opened:
        yield opened


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("reports")
    for name, shape in SHAPES.items():
        (root / f"{name}.html").write_text(render_report(build_plan(root / name, shape)), encoding="utf-8")
    return {name: root / f"{name}.html" for name in SHAPES}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", SHAPES)
def test_page_fits_and_can_be_read(
    page: Page, reports: dict[str, Path], name: str, width: int, scheme: str, record_proof: Recorder
) -> None:
    page.size(width)
    page.scheme(scheme)
    page.open(reports[name])
    checks = page.run(CHECKS)
    assert checks["texts"] > 100
    assert checks["overflow"] <= 0
    assert checks["wide"] == []
    assert checks["faint"] == []
    assert checks["least"] >= 4.5
    record_proof(CONTRAST, {"pages": 1, "texts": checks["texts"]}, least={"contrast": checks["least"]})


@pytest.mark.parametrize("name", SHAPES)
def test_page_asks_nobody_and_logs_nothing(page: Page, reports: dict[str, Path], name: str) -> None:
    page.size(1280)
    page.open(reports[name])
    page.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    loaded = page.run("Math.round(performance.getEntriesByType('navigation')[0].loadEventEnd)")
    print(f"{name}: {reports[name].stat().st_size:,} bytes, loaded in {loaded} ms")
    assert [url for url in page.requests() if not url.startswith("data:")] == [reports[name].as_uri()]
    assert page.complaints() == []
    assert reports[name].stat().st_size <= 2_000_000


@pytest.mark.parametrize("name", SHAPES)
def test_every_number_shown_is_the_plans(
    page: Page, reports: dict[str, Path], name: str, record_proof: Recorder
) -> None:
    page.size(1280)
    page.open(reports[name])
    checks = page.run(CHECKS)
    assert checks["wrong"] == []
    assert checks["loose"] == []
    assert len(checks["figures"]) > 40
    for at, value, text in checks["figures"]:
        # What a person reads is that value in one of the page's four notations.
        assert text in {show(int(value)) for show in (grouped, size, duration, ratio)}, (at, value, text)
    directory = reports[name].with_suffix("")
    summary = json.loads((directory / "summary.json").read_bytes())
    shown = {at: int(value) for at, value, _ in checks["figures"]}
    for key in ("waves", "lower_bound", "offline_during", "bytes", "replicas", "log_dirs"):
        assert shown[f"/summary/{key}"] == summary[key]
    for key, count in summary["brokers"].items():
        assert shown[f"/summary/brokers/{key}"] == count
    for slug, units in summary["conflicts"].items():
        if units:
            assert shown[f"/conflicts/{slug}/units"] == units
    record_proof(FIGURES, {"pages": 1, "numbers": len(checks["figures"])})


ROWS = """
(id) => [...document.getElementById(id).tBodies[0].rows].map((row) => [...row.cells].map((cell) =>
  [...cell.querySelectorAll("data")].map((data) => data.getAttribute("value")).concat(cell.textContent)))
"""


@pytest.mark.parametrize("name", ["tiny", "small", "large"])
def test_every_row_of_the_tables_is_the_plans(page: Page, reports: dict[str, Path], name: str) -> None:
    page.open(reports[name])
    directory = reports[name].with_suffix("")
    disks: list[dict[str, Any]] = json.loads((directory / "disks.json").read_bytes())["disks"]
    rows = page.run(f'({ROWS})("disks")')
    assert len(rows) == len(disks)
    for (broker, log_dir, held, replicas), disk in zip(rows, disks, strict=True):
        assert re.match(r"\d+", broker[-1])[0] == str(disk["node_id"])  # type: ignore[index]  # a match, or it fails
        assert log_dir[-1].startswith(disk["log_dir"])
        if disk["status"] == "ok":
            assert held[0] == str(sum(of["bytes"] for of in disk["kinds"].values()))
            assert f"{size(disk['total_bytes'])}, " in held[-1]
            assert replicas[-1].startswith(grouped(disk["replicas"]))
    waves = json.loads((directory / "waves.json").read_bytes())["clusters"]
    brokers = [(cluster["name"], broker) for cluster in waves for broker in cluster["brokers"]]
    rows = page.run(f'({ROWS})("brokers")')
    assert len(rows) == len(brokers)
    for (_, ready, held, steps), (cluster, broker) in zip(rows, brokers, strict=True):
        own = [disk for disk in disks if (disk["cluster"], disk["node_id"]) == (cluster, broker["node_id"])]
        assert broker["readiness"] in ready[-1]
        assert all(reason in ready[-1] for reason in broker["reasons"])
        assert held[0] == str(sum(of["bytes"] for disk in own for of in disk["kinds"].values()))
        assert steps[-1] == grouped(broker["steps"])


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_tab_reaches_everything_and_shows_where_it_is(page: Page, reports: dict[str, Path], name: str) -> None:
    page.size(390)
    page.open(reports[name])
    count = page.run(
        'document.querySelectorAll("details").forEach((fold) => { fold.open = true; });'
        f"window.every = [...document.querySelectorAll({FOCUSABLE!r})]; every.length"
    )
    reached = []
    for _ in range(count):
        page.press("Tab")
        reached.append(page.run("every.indexOf(document.activeElement)"))
        outline = page.run("getComputedStyle(document.activeElement).outline")
        assert "solid" in outline
        assert "3px" in outline
    assert reached == list(range(count))


def test_keys_open_folds_and_sort_and_filter(page: Page, reports: dict[str, Path]) -> None:
    page.size(1280)
    page.open(reports["large"])
    page.run('document.querySelector("[data-list=brokers] summary").focus()')
    assert page.run("document.activeElement.parentElement.open") is False
    page.press("Enter")
    assert page.run("document.activeElement.parentElement.open") is True
    page.run('document.querySelector("#brokers [data-sort=bytes] button").focus()')
    values = '[...document.querySelectorAll("#brokers tbody td:nth-child(3) > data")].map((data) => Number(data.value))'
    before = page.run(values)
    page.press("Enter")
    assert page.run('document.querySelector("#brokers [data-sort=bytes]").getAttribute("aria-sort")') == "ascending"
    assert page.run(values) == sorted(before)
    page.press("Space")
    assert page.run(values) == sorted(before, reverse=True)
    page.run('document.querySelector("[data-list=brokers] input").focus()')
    page.type("blocked")
    shown = page.run('[...document.querySelectorAll("#brokers tbody tr")].filter((row) => !row.hidden).length')
    summary = json.loads((reports["large"].with_suffix("") / "summary.json").read_bytes())
    assert shown == summary["brokers"]["blocked"] > 0
    assert page.run('document.querySelector("[data-list=brokers] output").textContent') == f"{shown} of 200 shown"


def test_hostile_topics_are_text(page: Page, reports: dict[str, Path]) -> None:
    page.size(390)
    page.open(reports["hostile"])
    assert page.run("document.title") == "Migration plan · logdird"
    assert page.run('document.querySelectorAll("script").length') == 2
    assert page.run('document.querySelectorAll("img").length') == 0
    topics = page.run('[...document.querySelectorAll(".minted td:first-child bdi")].map((topic) => topic.textContent)')
    assert topics == [*HOSTILE[:-1], "line\\nbreak\\u202egnp.exe\\x00"]


def test_page_is_whole_without_its_script(page: Page, reports: dict[str, Path]) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(reports["small"])
        page.call("Emulation.setScriptExecutionDisabled", value=False)
        assert page.run('document.querySelectorAll("button, input").length') == 0
        assert page.run('document.querySelectorAll("#disks tbody tr").length') == 48
        assert page.run('document.querySelectorAll("#brokers tbody tr").length') == 12
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
