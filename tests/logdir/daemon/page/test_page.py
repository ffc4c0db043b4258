"""The status page as text: it depends on its arguments alone, shows all that there is, bounded, and escapes it."""

from __future__ import annotations

import html
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from logdir.daemon.page.render import render
from logdir.daemon.page.words import REASON_WORDS, STANDINGS, STATE_WORDS, left, span
from logdir.daemon.report.status import StatusResult
from logdir.daemon.state import DaemonState, LogDirState
from logdir.formats.own.inventory import Kind
from logdir.markup import KIND_WORDS
from logdir.reasons import Reason
from tests.logdir.daemon.page.sample import (
    CONFIG,
    HOSTILE,
    HOUR_MS,
    NOW_MS,
    SHAPES,
    log_dir,
    problem,
    sample,
    topic_id,
    window,
)
from tools.logdirctl.main import build_parser

LIMIT_BYTES = 300 * 1000


class Tags(HTMLParser):
    """Collects the tags of a page, and its texts outside of the style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._is_style = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._is_style = tag == "style"

    def handle_data(self, data: str) -> None:
        if not self._is_style:
            self.texts.append(data)


def text_of(page: str) -> str:
    """Return what a reader reads, with single blanks."""
    return " ".join(" ".join(Tags(page).texts).split())


def section(page: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', page, re.DOTALL)
    assert found is not None
    return found[0]


def commands(page: str) -> list[list[str]]:
    """Return what stands on a page to be typed, split as a shell would."""
    return [shlex.split(html.unescape(one)) for one in re.findall(r"<code class=cmd>([^<]*)</code>", page)]


@pytest.mark.parametrize("name", SHAPES)
def test_equal_statuses_give_equal_bytes(name: str) -> None:
    assert render(SHAPES[name], NOW_MS) == render(SHAPES[name], NOW_MS)
    assert render(SHAPES[name], NOW_MS) != render(SHAPES[name], NOW_MS + 1000)


def test_no_page_of_a_large_broker_is_larger_than_its_budget() -> None:
    large = SHAPES["large"]
    assert (len(large.log_dirs), len(large.windows), len(large.events)) == (12, 500, 20)
    size = len(render(large, NOW_MS).encode())
    print(f"{size:,} bytes")
    assert size <= LIMIT_BYTES
    # The longest names that Kafka allows: they are cut, their ids are not.
    longest = replace(large, windows=tuple(replace(one, topic="t" * 249) for one in large.windows))
    assert len(render(longest, NOW_MS).encode()) <= LIMIT_BYTES


@pytest.mark.parametrize("name", SHAPES)
def test_a_page_fetches_nothing_and_runs_nothing(name: str) -> None:
    tags = Tags(render(SHAPES[name], NOW_MS)).tags
    assert {tag for tag, _ in tags} <= {
        "html", "head", "meta", "title", "link", "style", "body", "a", "header", "p", "b", "nav", "main", "section",
        "h1", "h2", "dl", "div", "dt", "dd", "span", "data", "time", "ol", "ul", "li", "code", "bdi", "i", "table",
        "caption", "thead", "tbody", "tr", "th", "td", "small", "br", "svg", "path", "rect", "figure", "figcaption",
        "details", "summary", "footer",
    }  # fmt: skip
    assert not [key for _, attrs in tags for key in attrs if key.startswith("on") or key in ("style", "src", "action")]
    targets = [attrs["href"] for _, attrs in tags if "href" in attrs]
    assert all(target is not None and (target.startswith("#") or target == "data:,") for target in targets)
    policy = next(attrs["content"] for tag, attrs in tags if tag == "meta" and "http-equiv" in attrs)
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "script" not in policy


def test_hostile_names_are_text() -> None:
    page = render(SHAPES["hostile"], NOW_MS)
    assert page.count("<script") == page.count("<img") == page.count("<!--") == 0
    assert page.count("<style") == page.count("</style") == 1
    assert "\u202e" not in page
    assert "\0" not in page
    page.encode("utf-8")
    shown = text_of(page)
    for name in HOSTILE:
        assert "".join(c if c.isprintable() else repr(c)[1:-1] for c in name) in shown
    # What a template would have put in its place stands as it is.
    assert "/$style" in shown


@pytest.mark.parametrize("state", DaemonState)
def test_every_state_of_the_daemon_is_in_words(state: DaemonState) -> None:
    page = render(sample(state=state.name), NOW_MS)
    assert f"b1 {STATE_WORDS[state.name]}; " in text_of(page)
    assert state.name in page


def test_a_state_of_a_newer_release_is_shown_as_it_is() -> None:
    assert "State DREAMING since" in text_of(render(sample(state="DREAMING"), NOW_MS))


@pytest.mark.parametrize("state", LogDirState)
def test_every_state_of_a_log_dir_is_shown_by_a_word_and_a_sign_and_its_problem(state: LogDirState) -> None:
    one = log_dir(0, state)
    shown = text_of(section(render(sample(log_dirs=(one,)), NOW_MS), "log-dirs"))
    assert f"{STANDINGS[state].mark} {state.value}" in shown
    assert STANDINGS[state].meaning in shown
    assert (problem(0).reason() in shown) == (state is not LogDirState.ONLINE)


def test_states_are_told_apart_without_colour() -> None:
    assert len({one.mark for one in STANDINGS.values()}) > len({one.css for one in STANDINGS.values()})
    assert STANDINGS.keys() == set(LogDirState)
    assert STATE_WORDS.keys() == {one.name for one in DaemonState}


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_stands_in_the_table_of_numbers(kind: Kind) -> None:
    found = section(render(sample(disks=1), NOW_MS), "log-dirs")
    figures = next(one for one in log_dir(0).kinds if one.kind is kind)
    assert KIND_WORDS[kind.value] in html.unescape(found)
    assert f"<data value={figures.entries}>" in found
    assert f"<data value={figures.log_bytes}>" in found


@pytest.mark.parametrize("reason", [*Reason, None])
def test_every_reason_of_a_staging_is_in_words(reason: Reason | None) -> None:
    one = replace(window(0, 1, 1), reason=reason)
    assert REASON_WORDS[reason] in text_of(section(render(replace(sample(), windows=(one,)), NOW_MS), "undo"))


def test_what_waits_comes_first_each_with_its_fix() -> None:
    page = render(sample(), NOW_MS)
    assert page.index('<ol class="waiting">') < page.index('<section id="log-dirs">')
    shown = text_of(page)
    for number in range(3):
        one = problem(number)
        assert f"{one.slug} {one.path} : {one.mismatch()} → {one.fix}" in shown
    assert "3 problems wait for an operator" in shown
    assert "nothing waits for an operator" in text_of(render(SHAPES["quiet"], NOW_MS))


def test_more_problems_than_can_be_read_are_counted() -> None:
    page = render(sample(waiting=tuple(problem(number) for number in range(250))), NOW_MS)
    assert page.count("<li><code") == 100
    assert "150 more: logdirctl status --config /etc/logdird/b1.yaml" in text_of(page)


@pytest.mark.parametrize(("count", "folded"), [(3, 0), (12, 0), (13, 1), (100, 88), (101, 88)])
def test_many_problems_are_folded_so_that_the_log_dirs_are_not_far(count: int, folded: int) -> None:
    found = render(sample(waiting=tuple(problem(number) for number in range(count))), NOW_MS)
    head, _, rest = found.partition('<section id="log-dirs">')[0].partition("<details>")
    assert head.count("<li><code") == min(count, 12)
    assert rest.count("<li><code") == folded
    assert (f"<summary>{folded} more problem" in rest) == (folded > 0)


def test_what_was_missed_is_a_loss_and_shown_as_one() -> None:
    shown = '<dt>Missed</dt><dd><b class="blocked"><data value="2">2</data>'
    assert shown in render(sample(), NOW_MS)
    assert "<dt>Missed</dt><dd><b><data" in render(sample(missed=0), NOW_MS)


def test_windows_come_in_the_order_of_the_status_with_the_command_of_each() -> None:
    status = sample(windows=30)
    found = section(render(status, NOW_MS), "undo")
    places = [found.index(str(one.topic)) for one in status.windows]
    assert places == sorted(places)
    assert [words[:4] for words in commands(found)] == [
        ["logdirctl", "staged", "restore", str(topic_id(number))] for number in range(30)
    ]
    assert {tuple(words[4:]) for words in commands(found)} == {("--config", CONFIG)}


@pytest.mark.parametrize("name", SHAPES)
def test_no_command_of_a_page_is_refused_by_the_parser(name: str) -> None:
    status = SHAPES[name]
    found = commands(render(status, NOW_MS))
    assert len(found) == len(status.windows)
    parser = build_parser()
    for words in found:
        parsed = parser.parse_args(words[1:])
        if name != "hostile":  # Its path is typed in a way that shells alone know.
            assert parsed.config == (status.config or CONFIG)
        assert not [word for word in words if word.startswith("--even-")]


def test_a_window_is_selected_by_its_id_else_by_its_name_and_not_at_all_without_both() -> None:
    def words(**changes: Any) -> list[list[str]]:
        return commands(render(replace(sample(), windows=(replace(window(0, 1, 1), **changes),)), NOW_MS))

    assert words()[0][3] == str(topic_id(0))
    assert words(topic_id=None)[0][3] == "payments.topic-00000"
    assert words(topic_id=None, topic=None) == []
    assert words(topic=None)[0][3] == str(topic_id(0))


def test_before_the_first_look_the_configuration_is_where_it_usually_lies() -> None:
    assert commands(render(sample(config=None), NOW_MS))[0][4:] == ["--config", "/etc/logdird/b1.yaml"]


def test_what_goes_when_adds_up_to_all_windows() -> None:
    status = sample(windows=200)
    found = section(render(status, NOW_MS), "undo")
    table = re.search(r'<table class="spans">.*?</table>', found, re.DOTALL)
    assert table is not None
    rows = re.findall(
        r"<th scope=row>([^<]*)<td class=n><data value=(\d+)>[^<]*</data><td class=n><data value=(\d+)>", table[0]
    )
    assert [row[0] for row in rows] == [
        "due now", "within an hour", "within 4 hours", "within a day", "within a week", "held",
    ]  # fmt: skip
    assert sum(int(row[1]) for row in rows) == sum(one.replicas for one in status.windows)
    assert sum(int(row[2]) for row in rows) == sum(one.log_bytes for one in status.windows)
    held = [one for one in status.windows if one.due_ms is None]
    assert int(rows[-1][1]) == sum(one.replicas for one in held)


def drawn(found: str) -> list[tuple[str, list[tuple[int, int]]]]:
    """Return the paths of the timeline: the class, then start and height of each bar."""
    return [
        (css, [(int(start), int(height)) for start, height in re.findall(r"M(\d+) 72v-(\d+)h18v\d+z", path)])
        for css, path in re.findall(r'<path class="(\w+)" d="([^"]*)"/>', found)
    ]


def test_the_timeline_goes_from_now_to_the_last_deadline_and_what_is_held_stands_apart() -> None:
    def of(*due_ms: int | None) -> list[tuple[str, list[tuple[int, int]]]]:
        windows = tuple(replace(window(0, 1, 1), due_ms=one, log_bytes=100) for one in due_ms)
        return drawn(render(replace(sample(), windows=windows), NOW_MS))

    end_ms = NOW_MS + 48 * HOUR_MS
    assert of(end_ms) == [("kg", [(20 * 47 + 1, 72)]), ("kg", [])]
    # What is overdue goes now; one hour is one bar of forty-eight; heights follow the bytes.
    assert of(NOW_MS - 5, NOW_MS + HOUR_MS, NOW_MS + HOUR_MS, end_ms) == [
        ("kg", [(1, 36), (21, 72), (20 * 47 + 1, 36)]), ("kg", [])
    ]  # fmt: skip
    assert of(None, None, end_ms) == [("kg", [(20 * 47 + 1, 36)]), ("kg", [(11, 72)])]
    assert of(None) == [("kg", []), ("kg", [(11, 72)])]
    assert of(NOW_MS - 1) == [("kg", [(1, 72)]), ("kg", [])]


def test_windows_that_are_left_out_are_counted_and_listed_by_a_command() -> None:
    shown = text_of(section(render(SHAPES["large"], NOW_MS), "undo"))
    assert "4,321 more entries are listed by logdirctl staged ls --config /etc/logdird/b1.yaml" in shown


def test_a_log_dir_without_a_number_is_named_in_its_window() -> None:
    one = replace(window(0, 1, 1), log_dirs=("/var/lib/kafka/data-0", "/var/lib/kafka/data-2", "/gone"))
    assert "log dirs 1, 3, /gone" in text_of(render(replace(sample(), windows=(one,)), NOW_MS))


def test_the_floor_is_a_line_in_the_bar_and_undo_that_is_off_is_in_words() -> None:
    one = replace(log_dir(0), is_undo_off=True, is_watched=False)
    page = section(render(sample(log_dirs=(one,), least_free_percent=15), NOW_MS), "log-dirs")
    assert '<rect class=mark x="85%" width="2"/>' in page
    shown = text_of(page)
    assert "the line is the floor of 15 % free" in shown
    assert "! undo is off : the disk is below the floor, and nothing is captured there" in shown
    assert "no watch: deletions are found by the sweep alone" in shown
    assert "class=mark" not in render(sample(least_free_percent=None), NOW_MS)


def test_a_disk_that_was_not_read_shows_no_figure_that_nobody_knows() -> None:
    one = replace(log_dir(0, LogDirState.OFFLINE), free_bytes=None, total_bytes=None, kinds=(), read_at_ms=None)
    shown = text_of(section(render(sample(log_dirs=(one,)), NOW_MS), "log-dirs"))
    assert "not read in full yet" in shown
    assert "free space is not known" in shown


def test_the_newest_event_comes_first() -> None:
    found = section(render(sample(events=6), NOW_MS), "history")
    assert re.findall(r"event-\d", found) == [f"event-{number}" for number in (5, 4, 3, 2, 1, 0)]


def test_gaps_and_failed_replicas_are_named_and_their_absence_too() -> None:
    shown = text_of(render(sample(), NOW_MS))
    assert "3 gaps since" in shown
    assert "(1 h 0 min)" in shown
    assert "4 replicas lay there" in shown
    assert f"{topic_id(7)} 0–2, 5" in shown
    quiet = render(SHAPES["quiet"], NOW_MS)
    assert "No gap since" in text_of(quiet)
    assert 'id="failed"' not in quiet


def test_a_daemon_that_starts_has_a_page_too() -> None:
    shown = text_of(render(SHAPES["starting"], NOW_MS))
    assert "It has not looked at the log dirs yet." in shown
    assert "The log dirs were not looked at yet." in shown
    assert "Nothing has happened since this logdird started." in shown
    # Nobody has looked: it says neither that nothing is staged, nor that nothing was missed.
    assert "Nothing is staged that could be undone." not in shown
    assert "What is staged is not known yet" in shown
    assert "Next purge – not known yet Can be undone – not known yet" in shown
    assert "No gap" not in shown
    assert "Deletions were not looked for yet." in shown


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("broker_runs", True, "the broker runs."),
        ("broker_runs", False, "the broker is stopped."),
        ("broker_runs", None, "the broker is not known to run."),
        ("node_id", None, "Its node is not known yet"),
        ("metadata_lag", 17, "17 records of the metadata log not read yet."),
        ("version", "9.9", "logdird 9.9, process 4711."),
        ("next_due_ms", NOW_MS + 90_000, "in 1 min 30 s at 2026-09-21T14:14:50Z"),
        ("next_due_ms", None, "nothing has a deadline"),
    ],
)
def test_the_head_says_how_it_stands(field: str, value: Any, wanted: str) -> None:
    assert wanted in text_of(render(sample(**{field: value}), NOW_MS)).replace(" .", ".")


def test_all_times_are_utc() -> None:
    page = render(sample(), NOW_MS)
    times = re.findall(r"<time>([^<]*)</time>", page)
    assert len(times) > 20
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", one) for one in times)


@pytest.mark.parametrize(
    ("length_ms", "shown"),
    [(-5, "0 ms"), (61_000, "1 min 1 s"), (48 * HOUR_MS, "2 d 0 h"), (2400 * HOUR_MS, "100 d 0 h")],
)
def test_spans_are_in_words(length_ms: int, shown: str) -> None:
    assert span(length_ms) == shown


def test_a_deadline_that_has_passed_is_due() -> None:
    assert (left(0, 5), left(5, 5), left(1005, 5)) == ("due now", "due now", "in 1.0 s")


def unclosed(page: str) -> list[str]:
    """Return what a page opens and does not close, but for what HTML closes by itself."""
    alone = {"meta", "link", "br", "rect", "path", "tr", "th", "td"}
    opened = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    names = set(re.findall(r"<(\w+)", opened)) - alone
    return sorted(
        name for name in names if len(re.findall(rf"<{name}\b", opened)) != len(re.findall(rf"</{name}>", opened))
    )


@pytest.mark.parametrize("name", SHAPES)
def test_every_element_is_closed(name: str) -> None:
    status: StatusResult = SHAPES[name]
    assert unclosed(render(status, NOW_MS)) == []
