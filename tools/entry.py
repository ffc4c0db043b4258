"""Where ``logdirctl`` starts: it checks the installation, answers ``--help`` and ``--version``, then parses.

Imports are few on purpose: ``logdirctl --help`` may take three times a bare interpreter, no more.
"""

from __future__ import annotations

import os
import sys

from tools import guard
from tools.cli import streams
from tools.logdirctl.commands import help_text
from tools.version import VERSION


def logdirctl() -> int:
    """Run ``logdirctl`` on the process's own arguments and streams; return the exit status."""
    out, err = streams.standard()
    try:
        refused = guard.mixed_installation()
        if refused is not None:
            err.write(f"logdirctl: {refused}\n")
            return 4
        arguments = sys.argv[1:]
        if not arguments:
            err.write(help_text())
            return 2
        if arguments in (["--help"], ["-h"], ["--version"]):
            out.write(help_text() if arguments != ["--version"] else f"logdirctl {VERSION}\n")
            out.flush()
            return 0
        _require_utf8_paths()
        from tools.cli.broker import as_owner
        from tools.logdirctl.main import main

        return main(arguments, out, err, as_owner if os.geteuid() == 0 else None)
    except streams.StdoutError as error:
        if not error.is_reader_gone:
            err.write(f"logdirctl: stdout-failed: standard output: expected room to write, found {error.found}\n")
        return 1
    except KeyboardInterrupt:  # before a command began, or a second one while the first was reported
        err.write("logdirctl: interrupted; logdirctl layout status and logdirctl staged ls show what was done\n")
        return 130
    finally:
        streams.leave()


def logdird() -> int:
    """Run ``logdird`` on the process's own arguments and streams; return the exit status."""
    refused = guard.mixed_installation()
    if refused is not None:
        sys.stderr.write(f"logdird: {refused}\n")
        return 4
    _require_utf8_paths()
    from tools.logdird import main

    return main(sys.argv[1:], sys.stdout, sys.stderr)


def _require_utf8_paths() -> None:
    """Start again in Python's UTF-8 mode where a locale would have paths read in another encoding; else do nothing.

    Files of ours hold paths as UTF-8, and two commands in two locales must take one path for the same. Standard output
    and standard error keep the encoding of the locale.
    """
    if sys.getfilesystemencoding() == "utf-8" or os.environ.get("PYTHONUTF8") == "1" or not sys.executable:
        return
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    environment = {"PYTHONIOENCODING": f"{encoding}:backslashreplace", **os.environ, "PYTHONUTF8": "1"}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606 - no shell is wanted
