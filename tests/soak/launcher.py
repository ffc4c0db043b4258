"""Run by path as a process of its own: starts ``logdirctl`` many times without paying for its imports each time.

What is installed under the console script's name is loaded once. Each line of standard input asks for one run; a fork
of this process runs it, and is killed by whoever asked. Which modules a command needs is found by running commands in a
child first, so that no command ever ran in the process that is forked.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.metadata
import json
import os
import sys


def run(argv: list[str], output: str) -> int:
    """Run the command in this process; return its exit status."""
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["logdirctl", *argv]
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="logdirctl")
    try:
        status = script.load()()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    return int(status or 0)


def warm(commands: list[list[str]]) -> None:
    """Import every module that these commands import."""
    known = set(sys.modules)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        for argv in commands:
            run(argv, os.devnull)
        names = "\n".join(sorted(set(sys.modules) - known))
        with os.fdopen(writing, "w") as pipe:
            pipe.write(names)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        names = pipe.read()
    os.waitpid(child, 0)
    for name in names.split("\n"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def main() -> None:
    """Serve until standard input ends."""
    for line in iter(sys.stdin.readline, ""):
        asked = json.loads(line)
        if "warm" in asked:
            warm(asked["warm"])
            gc.collect()
            gc.freeze()
            print("{}", flush=True)
            continue
        child = os.fork()
        if child == 0:
            status = 70
            try:
                status = run(asked["argv"], asked["output"])
            finally:
                os._exit(status)
        print(json.dumps({"pid": child}), flush=True)
        # Its number is nobody else's until whoever may still kill it has heard of its end.
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        print("{}", flush=True)
        sys.stdin.readline()
        _, status, used = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps({"status": code, "cpu": used.ru_utime + used.ru_stime}), flush=True)


if __name__ == "__main__":
    main()
