"""``logdirctl status --html`` writes the page of a daemon, and a configuration that no longer fits hides no daemon."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer

import pytest

from logdir.daemon.former_config import _sockets, answering_socket
from logdir.daemon.report.status import StatusResult
from logdir.errors import Problem
from logdir.service.report.json_form import to_json
from logdir.service.report.json_text import compact
from tests.builders import log_dir
from tests.logdir.daemon.page.sample import sample
from tests.tools.ctl import ctl, ctl_json
from tools.cli.arguments import Exit

CONFIG = "server.properties: server.properties\nsocket: s.sock\n"


class Answering(ThreadingMixIn, UnixStreamServer):
    """A daemon that answers with one status."""

    daemon_threads = True
    status: StatusResult = sample(waiting=())


class _Handler(BaseHTTPRequestHandler):
    server: Answering

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
        pass

    def do_GET(self) -> None:
        result = to_json(self.server.status)
        answer = {"command": "status", "format": 1, "exit": 0, "problems": [], "result": result}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{compact(answer)}\n".encode())


@pytest.fixture
def folder() -> Iterator[Path]:
    # The path of this folder is short enough for a socket.
    with tempfile.TemporaryDirectory(prefix="logdird-") as made:
        Path(made, "b1.yaml").write_text(CONFIG)
        yield Path(made)


@pytest.fixture
def server(folder: Path) -> Iterator[Answering]:
    with Answering(str(folder / "s.sock"), _Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def test_the_page_is_written_whole_and_what_follows_is_said(folder: Path, server: Answering) -> None:
    page = folder / "page.html"
    said = ctl("status", "--config", folder / "b1.yaml", "--html", page)
    assert (said.status, said.err) == (Exit.DONE, "")
    assert said.out.splitlines()[-2:] == [f"wrote {page}", "next: open it in a browser"]
    text = page.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.endswith("</html>\n")
    assert "<bdi>b1</bdi> is running; nothing waits for an operator" in text
    assert sorted(path.name for path in folder.iterdir()) == ["b1.yaml", "page.html", "s.sock"]


def test_what_waits_stands_on_the_page_and_is_exit_status_1(folder: Path, server: Answering) -> None:
    server.status = sample()
    said = ctl("status", "--socket", folder / "s.sock", "--html", folder / "page.html")
    assert said.status == Exit.PROBLEMS
    assert len(said.err.splitlines()) == 3
    assert "mend broken 2" in (folder / "page.html").read_text("utf-8")


def test_an_older_page_is_replaced_and_json_is_printed_beside_it(folder: Path, server: Answering) -> None:
    page = folder / "page.html"
    page.write_text("old")
    _, found = ctl_json("status", "--socket", folder / "s.sock", "--html", page)
    assert found["daemon"] == "b1"
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_on_standard_output_is_the_page_and_nothing_else(folder: Path, server: Answering) -> None:
    server.status = sample()
    said = ctl("status", "--socket", folder / "s.sock", "--html", "-")
    assert said.status == Exit.PROBLEMS
    assert said.out.startswith("<!DOCTYPE html>")
    assert said.out.endswith("</html>\n")
    assert len(said.err.splitlines()) == 3


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--html", "-", "--json"), "expected --html - without --json"),
        (("--html", "x", "--watch"), "both"),
        (("--html", "."), "expected a file to write, found a directory"),
        (("--html", ""), "expected a file to write, found a directory"),
        (("--html", "/"), "expected a file to write, found a directory"),
    ],
)
def test_what_cannot_be_written_together_or_as_a_file_is_refused(
    folder: Path, server: Answering, words: tuple[str, ...], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    said = ctl("status", "--socket", "s.sock", *words)
    assert (said.status, wanted in said.err) == (Exit.USAGE, True), said
    assert sorted(path.name for path in folder.iterdir()) == ["b1.yaml", "s.sock"]


def test_a_page_that_cannot_be_written_leaves_nothing(folder: Path, server: Answering) -> None:
    said = ctl("status", "--socket", folder / "s.sock", "--html", folder / "none" / "page.html")
    assert (said.status, "output-failed: " in said.err) == (Exit.PROBLEMS, True)


def test_a_page_in_a_log_dir_is_refused(folder: Path, server: Answering) -> None:
    top = log_dir(folder / "d1")
    before = sorted(path.name for path in top.iterdir())
    said = ctl("status", "--socket", folder / "s.sock", "--html", top / "page.html")
    assert (said.status, "inside-log-dir: " in said.err) == (Exit.REFUSED, True)
    assert sorted(path.name for path in top.iterdir()) == before


def test_without_a_daemon_there_is_one_line_and_the_older_page_stays(folder: Path) -> None:
    page = folder / "page.html"
    page.write_text("old")
    said = ctl("status", "--config", folder / "b1.yaml", "--html", page)
    assert (said.status, said.out) == (Exit.REFUSED, "")
    (line,) = said.err.splitlines()
    assert line.startswith(f"logdirctl status: daemon-unreachable: {folder / 's.sock'}: ")
    assert page.read_text() == "old"


BROKEN = {
    "an unknown key": f"{CONFIG}sokcet: x\n",
    "two problems": f"{CONFIG}a: 1\nb: 2\n",
    "no YAML": f"server.properties: [\n{CONFIG.splitlines()[1]}\n",
    "a key twice": f"{CONFIG}{CONFIG.splitlines()[0]}\n",
    "no broker": f"{CONFIG.splitlines()[1]}\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_daemon_of_a_configuration_that_no_longer_fits_is_shown_beside_its_problems(
    folder: Path, server: Answering, name: str
) -> None:
    (folder / "b1.yaml").write_text(BROKEN[name])
    said = ctl("status", "--config", folder / "b1.yaml")
    assert said.status == Exit.PROBLEMS
    assert "b1: RUNNING since" in said.out
    assert len(said.err.splitlines()) == (2 if name == "two problems" else 1)
    assert all(f" config-error: {folder}/b1.yaml" in line for line in said.err.splitlines())
    assert "staged ls --config" not in said.out  # It would be refused.
    page = folder / "page.html"
    assert ctl("status", "--config", folder / "b1.yaml", "--html", page).status == Exit.PROBLEMS
    assert "config-error" in page.read_text("utf-8")


def test_what_the_daemon_knows_of_its_configuration_is_not_shown_twice(folder: Path, server: Answering) -> None:
    (folder / "b1.yaml").write_text(BROKEN["two problems"])
    _, first = ctl_json("status", "--config", folder / "b1.yaml")
    assert len(first["waiting"]) == 2
    server.status = sample(waiting=tuple(Problem(**one) for one in first["waiting"]))  # It was to read it again.
    status, second = ctl_json("status", "--config", folder / "b1.yaml")
    assert (status, second["waiting"]) == (Exit.PROBLEMS, first["waiting"])


@pytest.mark.parametrize("name", BROKEN)
def test_without_a_daemon_a_configuration_that_does_not_fit_is_all_there_is(folder: Path, name: str) -> None:
    (folder / "b1.yaml").write_text(BROKEN[name])
    said = ctl("status", "--config", folder / "b1.yaml")
    assert (said.status, said.out) == (Exit.USAGE, "")
    assert "daemon-unreachable" not in said.err
    assert " config-error: " in said.err


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, ["/run/logdird/b1.sock"]),
        ("", ["/run/logdird/b1.sock"]),
        ("socket: s.sock\n", ["{folder}/s.sock", "/run/logdird/b1.sock"]),
        ("socket: '/a b/s.sock'  # here\n[\n", ["/a b/s.sock", "/run/logdird/b1.sock"]),
        ("socket: [\n", ["/run/logdird/b1.sock"]),
        ("socket: 7\n", ["/run/logdird/b1.sock"]),
        ("socket: one\nsocket: two\n", ["{folder}/one", "{folder}/two", "/run/logdird/b1.sock"]),
        ("# socket: s.sock\n socket: t.sock\n", ["/run/logdird/b1.sock"]),
    ],
)
def test_a_daemon_is_looked_for_where_its_file_says_then_where_its_name_says(
    tmp_path: Path, text: str | None, wanted: list[str]
) -> None:
    path = tmp_path / "b1.yaml"
    if text is not None:
        path.write_text(text)
    assert list(_sockets(str(path))) == [one.format(folder=tmp_path) for one in wanted]


def test_a_file_whose_name_is_none_of_a_configuration_has_no_daemon(tmp_path: Path) -> None:
    (tmp_path / "a b.yaml").write_text("socket: s.sock\n")
    assert answering_socket(str(tmp_path / "a b.yaml")) is None
