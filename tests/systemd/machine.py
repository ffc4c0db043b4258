"""systemd as the first process of a small machine: namespaces of mounts, processes, cgroups, network and names.

Nothing of it reaches the host. Its mounts, ``/run`` and its cgroups are its own; of the host's units it sees none; the
kernel's settings are read-only there; and it ends with the process that started it. What lies there is read and written
from outside through ``/proc/PID/root``. Whether the host itself was started by systemd does not matter.

The tree, the Python and the packages of these tests are mounted below ``/opt``: the units do not see what lies below
``/home``, ``/root`` and ``/tmp``.

Not here: what must hold (``test_units``, ``test_sandbox``, ``test_disks``).

Spec: systemd(1), systemd.exec(5); the container interface of systemd; namespaces(7), cgroups(7).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from logdir.daemon.socket import client
from logdir.service.report.exit_status import AnsweredError
from logdir.service.report.json_form import to_json
from tests.builders import log_dir
from tests.tools.command_lines import require_parsable

HOME: Final = Path(__file__).parents[2]
SYSTEMD: Final = Path("/lib/systemd/systemd")
NAMESPACES: Final = (
    "--pid", "--fork", "--kill-child", "--mount", "--cgroup", "--net", "--uts", "--ipc", "--mount-proc",
)  # fmt: skip
UID: Final = 9092
"""Of the user kafka there; nobody's on the host."""
SHARED_GID: Final = 9093
"""Of a group that kafka is in, to which the second log dir belongs."""
UNITS: Final = "etc/systemd/system"
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LONGEST_S: Final = 120
_DIRECTORIES: Final = ("JEXY6aqzQY-32P5TStzaFg", "AAAAAAAAAAAAAAAAAAAABA")
_BEFORE: Final = """\
set -eu
# A cgroup of its own, which the namespace takes for the root of all.
mkdir -p "$FOLDER/cgroup"
mount -t cgroup2 cgroup2 "$FOLDER/cgroup"
mkdir "$FOLDER/cgroup/$NAME"
echo $$ >"$FOLDER/cgroup/$NAME/cgroup.procs"
umount "$FOLDER/cgroup"
exec unshare {namespaces} /bin/sh "$FOLDER/first"
"""
_FIRST: Final = """\
set -eu
umask 022
memory() {
    mount -t tmpfs -o "mode=$2" tmpfs "$1"
}
mount --make-rprivate /
memory /mnt 755
mkdir /mnt/fill /mnt/none /mnt/d1 /mnt/d2
cp -a "$FOLDER/fill/." /mnt/fill/

memory /opt 755
cp -a /mnt/fill/opt/. /opt/
mkdir /opt/logdird/src /opt/logdird/python
mount --bind "$TREE" /opt/logdird/src
mount --bind "$PACKAGES" /opt/logdird/env/packages
mount --bind "$PYTHON" /opt/logdird/python

cp -a /etc /mnt/etc
rm -rf /mnt/etc/systemd/system /mnt/etc/systemd/system-generators /mnt/etc/fstab
cp -a /mnt/fill/etc/. /mnt/etc/
cat /mnt/fill/passwd >>/mnt/etc/passwd
cat /mnt/fill/group >>/mnt/etc/group
mount --bind /mnt/etc /etc

# The units of the host are not started here.
for place in /usr/lib/systemd /lib/systemd /usr/local/lib/systemd; do
    for kind in system system-generators system-environment-generators; do
        if [ -d "$place/$kind" ]; then
            mount --bind /mnt/none "$place/$kind"
        fi
    done
done
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount --bind /sys /sys
mount -o remount,bind,ro /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
if [ -e /dev/console ]; then
    mount --bind "$CONSOLE" /dev/console || true
fi
memory /var/lib 755
memory /var/tmp 1777
memory /tmp 1777
memory /run 755
# As on a host that systemd has started: what is mounted or unmounted reaches the services.
mount --make-rshared /
cd /
exec env -i container=logdird PATH="$PATH" LANG=C.UTF-8 "$SYSTEMD" --system --unit=machine.target \\
    --log-target=console --log-level=info --show-status=no
"""
_PYTHON: Final = """\
#!/bin/sh
LD_LIBRARY_PATH=/opt/logdird/python/lib PYTHONPATH=/opt/logdird/src PYTHONDONTWRITEBYTECODE=1
export LD_LIBRARY_PATH PYTHONPATH PYTHONDONTWRITEBYTECODE
exec /opt/logdird/env/bin/python "$@"
"""
_WRAPPER: Final = """\
#!/bin/sh
exec {python} -c 'import sys
from tools.entry import {name}
sys.argv[0] = "/opt/logdird/bin/{name}"
sys.exit({name}())' "$@"
"""
_TARGETS: Final = {
    "sysinit": "",
    "basic": "Requires=sysinit.target\nAfter=sysinit.target sockets.target\n",
    "sockets": "",
    "local-fs": "",
    "network": "",
    "shutdown": "",
    "multi-user": "",
    "machine": "Requires=basic.target\nAfter=basic.target\n",
}
"""What units depend on by default; of the host's none is started."""
_BROKER: Final = """\
[Unit]
Description=what stands in for a broker

[Service]
User=kafka
RuntimeDirectory=broker
ExecStart={python} /opt/logdird/src/tests/systemd/broker.py /run/broker/seen.json /mnt/d1/kafka /mnt/d2/kafka
"""
CONFIG: Final = """\
server.properties: /etc/kafka/server.properties
auto.while.stopped: true
sweep.interval.ms: 500
disk.timeout.ms: 2000
"""


def lacking() -> str:
    """Say what this host lacks; empty if nothing."""
    if os.geteuid() != 0:
        return "needs root: starts systemd in namespaces of its own"
    if not os.access(SYSTEMD, os.X_OK):
        return f"needs {SYSTEMD}: apt install systemd"
    for program in ("unshare", "nsenter"):
        if shutil.which(program) is None:
            return f"needs {program}: apt install util-linux"
    if "cgroup2" not in Path("/proc/filesystems").read_text("ascii").split():
        return "needs a kernel with cgroup2"
    for path in (str(HOME), sys.base_prefix, sysconfig.get_path("purelib")):
        if path.startswith(("/mnt/", "/opt/")):
            return f"needs the tree, Python and its packages elsewhere than below /mnt and /opt: {path}"
    if (HOME / "logdir").stat().st_mode & HOME.stat().st_mode & 0o005 != 0o005:
        return f"needs a tree that every user can read: chmod -R go+rX {HOME}"
    done = subprocess.run(["unshare", *NAMESPACES, "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"needs namespaces: unshare: {done.stderr.strip()}"


PYTHON: Final = "/opt/logdird/bin/python"
"""The Python of these tests, by its path in the machine: the same one, in an environment that lies there."""


def until(what: str, found: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is so; fail by its name if it does not become so."""
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() <= deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


class Machine:
    """A machine that runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        """Of its first process, as the host numbers it."""
        self.root = Path(f"/proc/{pid}/root")
        self.log_dirs = (self.root / "mnt/d1/kafka", self.root / "mnt/d2/kafka")

    def inside(self, *argv: object) -> list[str]:
        """Return a command that runs another one as root in the machine."""
        enter = ("nsenter", "--target", str(self.pid), "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--")
        return [*enter, "env", "-i", f"PATH=/opt/logdird/bin:{_PATH}", "LANG=C.UTF-8", *map(str, argv)]

    def run(self, *argv: object, status: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run a command as root, and check its exit status unless that is ``None``."""
        done = subprocess.run(self.inside(*argv), capture_output=True, text=True, check=False, timeout=_LONGEST_S)
        if status is not None:
            assert done.returncode == status, f"{argv}: {done.returncode}: {done.stdout}{done.stderr}"
        return done

    def ctl(self, *words: object, status: int | None = 0) -> dict[str, Any]:
        """Type a command of ``logdirctl``, with ``--json``; return the object that is printed."""
        done = self.run("logdirctl", *words, "--json", status=status)
        require_parsable(done.stderr)
        value: dict[str, Any] = json.loads(done.stdout)
        return value

    def show(self, unit: str, *names: str) -> list[str]:
        """Return properties of a unit, in the order asked for."""
        said = self.run("systemctl", "show", unit, *(f"--property={name}" for name in names)).stdout
        found = dict(line.split("=", 1) for line in said.splitlines())
        return [found[name] for name in names]

    def is_active(self, unit: str) -> bool:
        return self.run("systemctl", "is-active", "--quiet", unit, status=None).returncode == 0

    def status(self) -> dict[str, Any]:
        """Return the status of logdird, asked from outside; without one that answers it has no keys."""
        try:
            found = to_json(client.status(f"{self.root}/run/logdird/b1.sock"))
        except (client.DaemonUnreachableError, AnsweredError):
            return {}
        assert isinstance(found, dict)
        return found

    def until_running(self) -> dict[str, Any]:
        """Wait until logdird runs with all log dirs; return its status."""
        found: list[dict[str, Any]] = [{}]

        def is_so() -> bool:
            found[0] = self.status()
            states = [one["state"] for one in found[0].get("items", ())]
            return found[0].get("state") == "RUNNING" and states == ["online"] * len(self.log_dirs)

        until("logdird runs with all log dirs", is_so)
        return found[0]

    def main_pid(self, unit: str = "logdird@b1.service") -> int:
        """Return the number of the first process of a unit, as the host numbers it."""
        (group,) = self.show(unit, "ControlGroup")
        (inner,) = self.show(unit, "MainPID")
        procs = (self.root / f"sys/fs/cgroup{group}/cgroup.procs").read_text("ascii").split()
        for pid in procs:  # Read from outside: the numbers of the host.
            with suppress(FileNotFoundError, ProcessLookupError):
                lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
                (numbers,) = (line.split()[1:] for line in lines if line.startswith("NSpid:"))
                if numbers[-1] == inner:
                    return int(pid)
        raise AssertionError(f"{unit} has no process {inner} among {procs}")

    def write(self, path: str, text: str) -> None:
        """Write a file of root's, by its path in the machine."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")

    def make_disks(self) -> None:
        """Make what ``make install`` and a broker leave: the group and the directories of logdird, and log dirs."""
        self.run("systemd-sysusers", "/opt/logdird/src/systemd/sysusers.d/logdird.conf")
        self.run("systemd-tmpfiles", "--create", "/opt/logdird/src/systemd/tmpfiles.d/logdird.conf")
        for number, directory in enumerate(_DIRECTORIES):
            self.run("mount", "-t", "tmpfs", "-o", f"mode=755,uid={UID},gid={UID}", "disk", f"/mnt/d{number + 1}")
            log_dir(self.log_dirs[number], directory=directory)
        self.run("chown", "-R", "kafka:kafka", "/mnt/d1/kafka")
        # As where several programs share a disk: what is made there belongs to the group of its directory.
        self.run("chown", "-R", "kafka:shared", "/mnt/d2/kafka")
        self.run("chmod", "2770", "/mnt/d2/kafka")

    def set_up(self) -> None:
        """Make the log dirs and their work roots, and the drop-ins, as an operator does."""
        self.make_disks()
        self.ctl("init", "--config", "/etc/logdird/b1.yaml", "--apply")
        self.ctl("init", "--systemd", "--config", "/etc/logdird/b1.yaml", "--unit", "kafka", "--apply")
        self.run("systemctl", "daemon-reload")

    def drop_in(self, unit: str, *lines: str) -> None:
        """Add settings of this test to a unit."""
        self.write(f"/{UNITS}/{unit}.d/90-test.conf", "".join(f"{line}\n" for line in lines))
        self.run("systemctl", "daemon-reload")


def _filled(folder: Path) -> None:
    """Write what the machine finds: programs, units and configurations."""
    python, fill = PYTHON, folder / "fill"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    texts = {f"{UNITS}/{name}.target": f"[Unit]\nDefaultDependencies=no\n{more}" for name, more in _TARGETS.items()}
    for unit in (*(HOME / "systemd").glob("*.service"), *(HOME / "systemd").glob("*.socket")):
        texts[f"{UNITS}/{unit.name}"] = unit.read_text("utf-8")
    texts |= {
        f"{UNITS}/kafka.service": _BROKER.format(python=python),
        "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
        "etc/logdird/b1.yaml": CONFIG,
        "etc/kafka/server.properties": "broker.id=1\nlog.dirs=/mnt/d1/kafka,/mnt/d2/kafka\n",
        "passwd": f"kafka:x:{UID}:{UID}::/:/usr/sbin/nologin\n",
        "group": f"kafka:x:{UID}:\nshared:x:{SHARED_GID}:kafka\n",
        "opt/logdird/bin/python": _PYTHON,
        **{f"opt/logdird/bin/{name}": _WRAPPER.format(python=python, name=name) for name in ("logdird", "logdirctl")},
        "opt/logdird/env/pyvenv.cfg": "home = /opt/logdird/python/bin\ninclude-system-site-packages = false\n",
    }
    for name, text in texts.items():
        path = fill / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        path.chmod(0o755 if name.startswith("opt/") else 0o644)
    # An environment as venv makes it: python looks for its packages from where its link lies.
    environment = fill / "opt/logdird/env"
    for inner in ("packages", "bin", f"lib/{version}"):
        (environment / inner).mkdir(parents=True)
    (environment / "bin/python").symlink_to(f"/opt/logdird/python/bin/{version}")
    (environment / f"lib/{version}/site-packages").symlink_to("/opt/logdird/env/packages")
    (folder / "before").write_text(_BEFORE.format(namespaces=" ".join(NAMESPACES)))
    (folder / "first").write_text(_FIRST)


def _first_process(unshare: int) -> int | None:
    """Return the process that ``unshare`` has started, once it is systemd."""
    with suppress(FileNotFoundError, ProcessLookupError, ValueError):
        (child,) = Path(f"/proc/{unshare}/task/{unshare}/children").read_text("ascii").split()
        if Path(f"/proc/{child}/comm").read_text("ascii").strip() == "systemd":
            return int(child)
    return None


@contextmanager
def booted(folder: Path) -> Iterator[Machine]:
    """Start a machine; nothing of it is left at the end. What systemd says is printed, for a test that fails."""
    _filled(folder)
    ours, theirs = os.openpty()
    said: list[bytes] = []

    def listen() -> None:
        with suppress(OSError):
            said.extend(iter(lambda: os.read(ours, 1 << 12), b""))

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    name = f"logdird-test-{os.getpid()}-{folder.name}"
    environment = {
        "PATH": _PATH,
        "FOLDER": str(folder),
        "NAME": name,
        "TREE": str(HOME),
        "PYTHON": sys.base_prefix,
        "PACKAGES": sysconfig.get_path("purelib"),
        "CONSOLE": os.ttyname(theirs),
        "SYSTEMD": str(SYSTEMD),
    }
    with (folder / "said").open("wb") as out:
        process = subprocess.Popen(
            ["unshare", "--mount", "/bin/sh", str(folder / "before")],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        pids: list[int | None] = [None]

        def is_there() -> bool:
            pids[0] = _first_process(process.pid)
            return pids[0] is not None or process.poll() is not None

        until("systemd is the first process", is_there)
        assert pids[0] is not None, (folder / "said").read_text()
        machine = Machine(pids[0])
        until("systemd has started", lambda: machine.is_active("machine.target"))
        yield machine
    finally:
        first = _first_process(process.pid)
        if process.poll() is None:
            process.kill()
        if first is not None:
            with suppress(ProcessLookupError):  # It ends with its starter.
                os.kill(first, signal.SIGKILL)
        process.wait()
        os.close(theirs)
        listener.join(1)
        os.close(ours)
        print((folder / "said").read_text(), b"".join(said).decode(errors="replace"), sep="\n")
        _forget(folder, name)


def _forget(folder: Path, name: str) -> None:
    """Remove the cgroup of a machine, once all that ran there has ended."""
    script = """\
mount -t cgroup2 cgroup2 "$1/cgroup"
for round in 1 2 3 4 5 6 7 8 9 10; do
    [ -d "$1/cgroup/$2" ] || exit 0
    find "$1/cgroup/$2" -depth -type d -exec rmdir {} + 2>/dev/null && exit 0
    sleep 0.3
done
exit 1
"""
    command = ["unshare", "--mount", "/bin/sh", "-c", script, "forget", str(folder), name]
    assert subprocess.run(command, check=False, timeout=_LONGEST_S).returncode == 0, f"the cgroup {name} is left"
