"""The status page as a reader meets it: drawn in headless Chromium, light and dark, narrow and wide, and on paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from logdir.daemon.page.render import render
from logdir.markup import grouped, size
from tests.browser.chromium import NAMES, Page, chromium, find
from tests.logdir.daemon.page.sample import HOSTILE, NOW_MS, SHAPES

pytestmark = pytest.mark.browser

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
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("pages")
    for name, status in SHAPES.items():
        (root / f"{name}.html").write_text(render(status, NOW_MS), encoding="utf-8")
    return {name: root / f"{name}.html" for name in SHAPES}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", SHAPES)
def test_page_fits_and_can_be_read(page: Page, pages: dict[str, Path], name: str, width: int, scheme: str) -> None:
    page.size(width)
    page.scheme(scheme)
    page.open(pages[name])
    checks = page.run(CHECKS)
    assert checks["texts"] > (30 if name == "starting" else 100 if name != "quiet" else 60)
    assert checks["overflow"] <= 0
    assert checks["wide"] == []
    assert checks["faint"] == []
    assert checks["least"] >= 4.5
    assert checks["loose"] == []


@pytest.mark.parametrize("name", SHAPES)
def test_page_asks_nobody_and_logs_nothing(page: Page, pages: dict[str, Path], name: str) -> None:
    page.size(1280)
    page.open(pages[name])
    page.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    loaded = page.run("Math.round(performance.getEntriesByType('navigation')[0].loadEventEnd)")
    print(f"{name}: {pages[name].stat().st_size:,} bytes, drawn in {loaded} ms")
    assert [url for url in page.requests() if not url.startswith("data:")] == [pages[name].as_uri()]
    assert page.complaints() == []
    assert pages[name].stat().st_size <= 300_000


@pytest.mark.parametrize("name", SHAPES)
def test_every_number_reads_as_its_value(page: Page, pages: dict[str, Path], name: str) -> None:
    page.open(pages[name])
    found = page.run(
        '[...document.querySelectorAll("data")].map((one) => [one.getAttribute("value"), one.textContent])'
    )
    assert found
    for value, text in found:
        assert text in {grouped(int(value)), size(int(value))} or text.startswith(("in ", "due ")), (value, text)


@pytest.mark.parametrize("name", ["quiet", "usual", "large"])
def test_tab_reaches_everything_and_shows_where_it_is(page: Page, pages: dict[str, Path], name: str) -> None:
    page.size(390)
    page.open(pages[name])
    count = page.run(f"window.every = [...document.querySelectorAll({FOCUSABLE!r})]; every.length")
    assert count >= 6
    reached = []
    for _ in range(count):
        page.press("Tab")
        reached.append(page.run("every.indexOf(document.activeElement)"))
        outline = page.run("getComputedStyle(document.activeElement).outline")
        assert "solid" in outline
        assert "3px" in outline
    assert reached == list(range(count))


def test_keys_open_what_is_folded(page: Page, pages: dict[str, Path]) -> None:
    page.size(1280)
    page.open(pages["large"])
    shown = 'document.querySelector(".windows").checkVisibility()'
    page.run('document.querySelector("#undo summary").focus()')
    assert page.run(shown) is False
    page.press("Enter")
    assert page.run(shown) is True
    assert page.run('document.querySelectorAll(".windows tbody tr").length') == 500
    page.press("Space")
    assert page.run(shown) is False


def test_hostile_names_are_text(page: Page, pages: dict[str, Path]) -> None:
    page.size(390)
    page.open(pages["hostile"])
    assert page.run("document.title") == f"{HOSTILE[0]} · logdird status"
    assert page.run('document.querySelectorAll("script, img, iframe, object").length') == 0
    assert page.run('document.querySelectorAll("style").length') == 1
    topics = page.run('[...document.querySelectorAll(".windows tbody th > bdi")].map((topic) => topic.textContent)')
    assert topics == [*HOSTILE[:5], "line\\nbreak\\u202egnp.exe\\x00", "/d\\udcff/$style"]


def test_what_is_drawn_is_there_and_its_colours_have_words(page: Page, pages: dict[str, Path]) -> None:
    page.size(390)
    page.scheme("dark")
    page.open(pages["usual"])
    sizes = page.run(
        '[...document.querySelectorAll("main svg")].map((one) => one.getBoundingClientRect())'
        ".map((box) => [box.width, box.height])"
    )
    assert len(sizes) == 3 + 2
    assert all(width > 30 and height >= 10 for width, height in sizes)
    fills = page.run(
        '[...document.querySelectorAll("#disks tbody tr:first-child rect")].map((one) => getComputedStyle(one).fill)'
    )
    assert len(set(fills)) == len(fills) == 8
    states = page.run('[...document.querySelectorAll(".pill")].map((one) => one.textContent)')
    assert states == ["✓ online", "! read-only", "? suspect"]
    # Drawings are for eyes alone, and each stands beside its numbers.
    assert page.run('[...document.querySelectorAll("svg")].every((one) => one.getAttribute("aria-hidden") === "true")')
    assert page.run('document.querySelectorAll(".spans tbody tr").length') == 4
    assert page.run('document.querySelectorAll(".numbers tbody tr").length') == 30


def test_every_table_has_a_caption_and_heads_with_a_scope(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["usual"])
    assert page.run('document.querySelectorAll("table").length') == 6
    assert page.run('[...document.querySelectorAll("table")].every((one) => one.caption && one.tHead)')
    assert page.run('[...document.querySelectorAll("th")].every((one) => ["row", "col"].includes(one.scope))')


def test_on_paper_the_page_fits_without_its_navigation(page: Page, pages: dict[str, Path]) -> None:
    page.size(700)
    page.open(pages["usual"])
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert page.run('getComputedStyle(document.querySelector("nav")).display') == "none"
        assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.run('getComputedStyle(document.querySelector("section")).borderTopStyle') == "none"
    finally:
        page.call("Emulation.setEmulatedMedia", media="")
