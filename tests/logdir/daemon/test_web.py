"""The status page and the metrics over TCP: read-only, for this host alone, and nobody is held up by a slow client."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from logdir.daemon.report.status import StatusResult
from logdir.daemon.socket.connections import MOST_CLIENTS
from logdir.daemon.supervisor import Supervisor
from logdir.daemon.web.listen_error import ListenError
from logdir.daemon.web.server import DEADLINE_MS, HEADERS, Web
from logdir.daemon.web.site import is_loopback
from tests.logdir.daemon.page.sample import sample
from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.tools.ctl import HOME, ctl

LOOPBACK = ("127.0.0.1", 0)
Address = tuple[str, int]


class Asked:
    """The part of a supervisor that a page needs."""

    def __init__(self, status: Address | None = LOOPBACK, metrics: Address | None = None) -> None:
        self.config = SimpleNamespace(name="b1", status_listen=status, metrics_listen=metrics)
        self.count = 0
        self.error: Exception | None = None

    def status(self) -> StatusResult:
        self.count += 1
        if self.error is not None:
            raise self.error
        return sample()


@contextmanager
def served(
    asked: Asked, passed: Any = (), deadline_ms: int = DEADLINE_MS, fresh_ms: int = 0
) -> Iterator[list[Address]]:
    """Serve; yield the address of each socket."""
    web = Web(cast(Supervisor, asked), dict(passed), deadline_ms=deadline_ms, fresh_ms=fresh_ms)
    web.start()
    try:
        yield [(host.strip("[]"), int(port)) for host, _, port in (one.rpartition(":") for _, one in web.addresses)]
    finally:
        web.stop()


def get(path: str = "/", host: str | None = "localhost", method: str = "GET") -> bytes:
    named = "" if host is None else f"Host: {host}\r\n"
    return f"{method} {path} HTTP/1.1\r\n{named}\r\n".encode()


def ask(address: Any, data: bytes) -> bytes:
    """Send bytes, and return all that comes back until the connection is closed."""
    with socket.create_connection(address, 30) if isinstance(address, tuple) else unix(address) as connection:
        with suppress(OSError):  # It has answered, and closed, before it read all of this.
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        return all_of(connection)


def unix(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(30)
    connection.connect(path)
    return connection


def all_of(connection: socket.socket) -> bytes:
    found = b""
    with suppress(ConnectionResetError):  # So a connection ends of which not all was read.
        while part := connection.recv(1 << 20):
            found += part
    return found


def answer(raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of an answer; the length must be that of the body, if there is one."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("iso-8859-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert not body or headers["Content-Length"] == str(len(body))
    return int(first.split()[1]), headers, body


@pytest.mark.parametrize("path", ["/", "/status.html", "/?again"])
def test_a_browser_of_this_host_gets_the_page(path: str) -> None:
    with served(Asked()) as (address,):
        status, headers, body = answer(ask(address, get(path)))
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert body.startswith(b"<!DOCTYPE html>")
    assert b"<b>logdird</b> status of <bdi>b1</bdi>" in body


def test_head_is_answered_without_a_body() -> None:
    with served(Asked(), fresh_ms=60_000) as (address,):
        whole, head = answer(ask(address, get())), answer(ask(address, get(method="HEAD")))
    assert (head[0], head[2]) == (200, b"")
    assert head[1]["Content-Length"] == str(len(whole[2]))
    assert head[1]["Content-Type"] == whole[1]["Content-Type"]


OTHERS = {
    "the status in JSON": (get("/v1/status"), 404),
    "the metrics": (get("/metrics"), 404),
    "a file": (get("/../../etc/passwd"), 404),
    "a whole address": (get("http://localhost/"), 404),
    "a change": (get("/v1/use-cases/staged-purge", method="POST"), 405),
    "another method": (get(method="DELETE"), 405),
    "a method of proxies": (get("localhost:22", method="CONNECT"), 405),
    "no method": (get(method="get"), 405),
    "no HTTP": (b"hello\r\n\r\n", 400),
    "an empty line": (b"\r\n\r\n", 400),
    "a version that is none": (b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", 505),
    "a long line": (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", 414),
    "many headers": (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431),
    "a name of another host": (get(host="evil.example"), 421),
    "no name": (get(host=None), 421),
    "two names": (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 421),
}


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_else_is_answered_and_every_answer_keeps_a_browser_from_everything(name: str) -> None:
    data, expected = OTHERS[name]
    asked = Asked()
    with served(asked) as (address,):
        status, headers, body = answer(ask(address, data))
        assert answer(ask(address, get()))[0] == 200
    assert status == expected
    assert asked.count == 1
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert b"evil" not in body
    assert HEADERS.items() <= headers.items()
    if status == 405:
        assert headers["Allow"] == "GET, HEAD"


def test_the_page_itself_is_answered_with_a_policy_that_allows_nothing_but_its_style() -> None:
    with served(Asked()) as (address,):
        _, headers, _ = answer(ask(address, get()))
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; ")
    assert "script" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in headers
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    ("host", "is_so"),
    [
        ("localhost", True),
        ("LOCALHOST:9470", True),
        ("127.0.0.1:9470", True),
        ("127.1.2.3", True),
        ("[::1]:9470", True),
        ("::1", False),
        ("localhost.evil.example", False),
        ("evil.example:9470", False),
        ("127.0.0.1.evil.example", False),
        ("1270.0.0.1", False),
        ("localhost:", False),
        ("", False),
        ("192.168.1.7", False),
        ("localhost, evil.example", False),
    ],
)
def test_a_name_of_another_host_is_none_of_this_one(host: str, is_so: bool) -> None:
    assert is_loopback([host]) is is_so
    assert is_loopback([host, host]) is False


def test_clients_that_send_nothing_hold_up_no_other() -> None:
    with served(Asked(), deadline_ms=120_000) as (address,), ExitStack() as opened:
        for _ in range(2 * MOST_CLIENTS):
            connection = opened.enter_context(socket.create_connection(address, 30))
            connection.sendall(b"GET / HT")
        assert answer(ask(address, get()))[0] == 200


def test_a_client_that_sends_nothing_is_cut_off_at_its_deadline() -> None:
    with served(Asked(), deadline_ms=200) as (address,), socket.create_connection(address, 30) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        assert all_of(slow) == b""


@pytest.mark.parametrize(("fresh_ms", "made"), [(600_000, 1), (0, 20)])
def test_however_many_ask_a_page_is_made_once_while_it_is_fresh(fresh_ms: int, made: int) -> None:
    asked = Asked()
    with served(asked, fresh_ms=fresh_ms) as (address,):
        for _ in range(20):
            assert answer(ask(address, get()))[0] == 200
    assert asked.count == made


def test_a_fault_is_answered_and_logged_and_the_next_one_gets_the_page(caplog: pytest.LogCaptureFixture) -> None:
    asked = Asked()
    with served(asked) as (address,):
        asked.error = RuntimeError("secret")
        status, _, body = answer(ask(address, get()))
        asked.error = None
        assert answer(ask(address, get()))[0] == 200
    assert (status, b"secret" in body) == (500, False)
    assert "web.fault page=status" in caplog.text


def test_where_nothing_asks_for_it_nothing_is_served() -> None:
    with served(Asked(status=None)) as addresses:
        assert addresses == []


def test_a_port_in_use_is_named_and_nothing_stays_open() -> None:
    with socket.create_server(LOOPBACK) as other:
        port = other.getsockname()[1]
        with pytest.raises(ListenError) as found:
            Web(cast(Supervisor, Asked(metrics=("127.0.0.1", port))), {})
    assert str(found.value).startswith(f"listen-failed: metrics.listen: 127.0.0.1:{port}: ")
    assert found.value.found == "Address already in use"
    assert "\n" not in str(found.value)
    assert found.value.problem().fix


def test_a_port_is_free_after_the_end() -> None:
    with served(Asked()) as (address,):
        assert answer(ask(address, get()))[0] == 200
    with served(Asked(status=address)) as (again,):
        assert again == address
        assert answer(ask(address, get()))[0] == 200


def test_ipv6_is_served_too() -> None:
    if not socket.has_ipv6:
        pytest.skip("needs IPv6: a Python with it")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("needs IPv6: a host with the address ::1")
    with served(Asked(status=("::1", 0))) as (address,):
        assert answer(ask(address, get(host=f"[::1]:{address[1]}")))[0] == 200


def test_a_passed_socket_is_served_instead_of_the_address_and_outlives_the_daemon() -> None:
    """It is that of systemd, which passes it to the next start: a shutdown would end it there, too."""
    with socket.create_server(LOOPBACK) as of_systemd:
        address = of_systemd.getsockname()
        for _ in range(2):
            with served(Asked(status=("127.0.0.1", 1)), {"status": (of_systemd.dup(),)}) as addresses:
                assert addresses == [address]
                assert answer(ask(address, get()))[0] == 200
        of_systemd.settimeout(30)
        with socket.create_connection(address, 30):
            of_systemd.accept()[0].close()


def test_a_passed_unix_socket_is_served(tmp_path: Path) -> None:
    path = str(tmp_path / "p.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        web = Web(cast(Supervisor, Asked(status=None)), {"status": (listener.dup(),)})
        web.start()
        try:
            assert answer(ask(path, get()))[0] == 200
        finally:
            web.stop()


def test_a_page_that_other_hosts_would_reach_is_not_served() -> None:
    with socket.create_server(("0.0.0.0", 0)) as open_to_all:
        with pytest.raises(ListenError, match=r"listen-failed: status: 0\.0\.0\.0:"):
            Web(cast(Supervisor, Asked(status=None)), {"status": (open_to_all.dup(),)})
        # The metrics are: Prometheus is another host.
        with served(Asked(status=None), {"metrics": (open_to_all.dup(),)}) as addresses:
            assert addresses == [open_to_all.getsockname()]


TAKEN = """
import json, os, sys
from logdir.daemon.web.passed import take_passed
from logdir.errors import LogDirError
try:
    found = take_passed({"status", "metrics"})
except LogDirError as error:
    print(error.problem().line())
    sys.exit()
left = {name: value for name, value in os.environ.items() if name.startswith("LISTEN_")}
flags = [os.get_inheritable(one.fileno()) for many in found.values() for one in many]
shown = {name: [one.getsockname()[1] for one in many] for name, many in found.items()}
print(json.dumps([shown, left, flags]))
"""
PASSING = """
import fcntl, os, socket, sys
names, pid, count, ports, command = *sys.argv[1:4], [int(one) for one in sys.argv[4].split(",") if one], sys.argv[5:]
moved = []
for port in ports:
    made = socket.create_server(("127.0.0.1", port)) if port >= 0 else socket.socket()
    moved.append(fcntl.fcntl(made.fileno(), fcntl.F_DUPFD_CLOEXEC, 50))
    made.close()
for place, descriptor in enumerate(moved):
    os.dup2(descriptor, 3 + place)
os.environ.update(LISTEN_PID=pid or str(os.getpid()), LISTEN_FDS=count, LISTEN_FDNAMES=names)
os.execvp(command[0], command)
"""
"""Opens ports and passes them as systemd does, then becomes a program: names, pid, count, ports, command."""


def passing(names: str, ports: list[int], *command: str, pid: str = "", count: str | None = None) -> list[str]:
    listed = ",".join(map(str, ports))
    return [sys.executable, "-c", PASSING, names, pid, str(len(ports)) if count is None else count, listed, *command]


def taken(names: str, ports: list[int], **more: str) -> str:
    command = passing(names, ports, sys.executable, "-c", TAKEN, **more)
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def free_ports(count: int) -> list[int]:
    with ExitStack() as opened:
        return [opened.enter_context(socket.create_server(LOOPBACK)).getsockname()[1] for _ in range(count)]


def test_passed_sockets_are_taken_by_their_names_and_given_to_no_other_process() -> None:
    ports = free_ports(4)
    shown, left, flags = json.loads(taken("status:metrics:other:status", ports))
    assert shown == {"status": [ports[0], ports[3]], "metrics": [ports[1]]}
    assert left == {}
    assert flags == [False] * 3


@pytest.mark.parametrize(
    "more", [{"pid": "1"}, {"pid": "none"}, {"count": ""}, {"count": "many"}, {"count": "0"}, {"count": "²"}]
)
def test_what_was_passed_to_another_process_is_left_alone(more: dict[str, str]) -> None:
    assert json.loads(taken("status", free_ports(1), **more)) == [{}, {}, []]


def test_sockets_without_their_names_are_none_of_ours() -> None:
    assert json.loads(taken("status", free_ports(2))) == [{}, {}, []]


@pytest.mark.parametrize(("ports", "count"), [([-1], None), ([], "1")], ids=["not listening", "no socket"])
def test_a_descriptor_that_is_no_listening_socket_is_refused_in_one_line(ports: list[int], count: str | None) -> None:
    line = taken("status", ports, **({} if count is None else {"count": count}))
    assert line.startswith("listen-failed: LISTEN_FDNAMES: status: expected a stream socket that listens, found ")
    assert "\n" not in line


def children_with(one: Daemon, ports: list[int]) -> list[tuple[int, str]]:
    """Return each process of a daemon that has a variable of the passed sockets, or one of them open."""
    inodes = {
        line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if int(line.split()[1].rpartition(":")[2], 16) in ports
    }  # fmt: skip
    found = []
    for pid in one.children():
        top = Path(f"/proc/{pid}")
        with suppress(FileNotFoundError, ProcessLookupError):  # It has ended meanwhile.
            if b"LISTEN_" in (top / "environ").read_bytes():
                found.append((pid, "environment"))
            opened = {str(file.readlink()) for file in (top / "fd").iterdir()}
            found += [(pid, "socket")] if opened & {f"socket:[{inode}]" for inode in inodes} else []
    return found


def test_a_daemon_serves_what_its_configuration_names(tmp_path: Path) -> None:
    status, metrics = free_ports(2)
    more = f"status.listen: 127.0.0.1:{status}\nmetrics.listen: 127.0.0.1:{metrics}\n"
    with daemon(tmp_path, more=more) as one:
        page = answer(ask(("127.0.0.1", status), get()))
        assert page[0] == 200
        assert b"<bdi>b1</bdi> is running" in page[2]
        assert f"<bdi>{one.log_dirs[0]}</bdi>".encode() in page[2]
        scraped = answer(ask(("127.0.0.1", metrics), get("/metrics", host="prometheus.example")))
        assert (scraped[0], scraped[1]["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert b"logdird_info{" in scraped[2]
        assert answer(ask(("127.0.0.1", metrics), get("/")))[0] == 404
        gone = one.delete(one.make("pay"))
        until("it is captured", lambda: one.status().captured == 1)
        one.remove(gone)
        until("the page shows it", lambda: b"<bdi>pay</bdi>" in answer(ask(("127.0.0.1", status), get()))[2])
        assert one.stop() == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", status), 5)


def test_a_daemon_whose_port_is_in_use_does_not_start(tmp_path: Path) -> None:
    with socket.create_server(LOOPBACK) as other, daemon(tmp_path, is_started=False) as one:
        port = other.getsockname()[1]
        one.configure(f"status.listen: 127.0.0.1:{port}\n")
        done = subprocess.run(one.command(), cwd=HOME, capture_output=True, text=True, timeout=60)
        (line,) = (line for line in done.stderr.splitlines() if line.startswith("logdird: "))
        assert done.returncode == 4
        assert line.startswith(f"logdird: listen-failed: status.listen: 127.0.0.1:{port}: ")
        assert not Path(one.socket).exists()
        assert ctl("staged", "ls", "--server-properties", one.server_properties).status == 0


def test_a_reload_with_another_port_is_refused_and_the_page_stays(tmp_path: Path) -> None:
    first, second = free_ports(2)
    with daemon(tmp_path, more=f"status.listen: 127.0.0.1:{first}\n") as one:
        one.configure(f"status.listen: 127.0.0.1:{second}\n")
        assert one.process is not None
        one.process.send_signal(signal.SIGHUP)
        until("it is refused", lambda: any("status.listen" in problem.line() for problem in one.status().waiting))
        assert answer(ask(("127.0.0.1", first), get()))[0] == 200
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", second), 5)


class Passed(Daemon):
    """A daemon to which sockets are passed."""

    ports: list[int]

    def command(self, *words: str) -> list[str]:
        return passing("status:metrics", self.ports, *super().command(*words))


def test_a_daemon_serves_on_sockets_that_systemd_passed_and_its_workers_get_none(tmp_path: Path) -> None:
    one = Passed(tmp_path)
    one.ports = free_ports(2)
    try:
        one.start()
        assert answer(ask(("127.0.0.1", one.ports[0]), get()))[0] == 200
        assert answer(ask(("127.0.0.1", one.ports[1]), get("/metrics")))[0] == 200
        # Both workers and both watches; one that was just forked has all of its parent, until it is another program.
        until("each log dir has its processes", lambda: len(one.children()) >= 4)
        until("none of them has a socket", lambda: children_with(one, one.ports) == [])
        assert one.stop() == 0
    finally:
        if one.process is not None and one.process.poll() is None:
            one.process.kill()
            one.process.wait()
