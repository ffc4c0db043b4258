"""Where the commands start: the guard, then the fast way out for ``--help``, then the parser.

Imports are few on purpose: ``logdirctl --help`` may take three times a bare interpreter, no more.
"""

from __future__ import annotations

import os
import sys

from tools import guard

_HELP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "logdirctl", "help.txt")


def logdirctl() -> int:
    """Run ``logdirctl`` on the process's own arguments and streams; return the exit status."""
    refused = guard.mixed_installation()
    if refused is not None:
        sys.stderr.write(f"logdirctl: {refused}\n")
        return 4
    arguments = sys.argv[1:]
    if arguments in ([], ["--help"], ["-h"]):
        # Prebuilt; a test compares it with the parser's own.
        with open(_HELP, encoding="utf-8") as file:
            text = file.read()
        if arguments:
            sys.stdout.write(text)
            return 0
        sys.stderr.write(text)
        return 2
    from tools.logdirctl.main import main

    status = main(arguments, sys.stdout, sys.stderr)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads any more; the interpreter must not try again on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status
