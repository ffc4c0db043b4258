"""What a command that Ctrl-C ended prints: what is done and what is not, and what to type next.

Nothing is undone here: an interrupt is like a kill at that moment, and the next command takes up what it left. After
an interrupted change of layout the log dirs are read once more, to print whether a broker can start.

Spec: design §2 law 8, §6, §8.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from logdir.errors import Problem
from logdir.service.layout_status import start_sentence
from logdir.text import quoted
from tools.cli.arguments import Exit, Streams, failed, say
from tools.cli.broker import argv_of, request_of

SLUG = "interrupted"
_OVERRIDES = ("--even-", "--include-held")
_STAYS = "what was done by then is done and stays"
_GOES_ON = "what was under way is finished or undone by the next command that changes something"


def tell(arguments: argparse.Namespace | None, argv: Sequence[str], streams: Streams, *, as_json: bool) -> int:
    """Print that a command was interrupted, and what to type next; return the exit status.

    Args:
        arguments: Of the command; ``None`` if they were not parsed yet.
        argv: The arguments as typed.
        streams: Where to print.
        as_json: Whether to print the JSON envelope.
    """
    title = "logdirctl" if arguments is None else arguments.title
    changes = arguments is not None and bool(getattr(arguments, "apply", False))
    now = "no log dir was changed" if arguments is None or not changes else _how_it_is(arguments)
    following = f"logdirctl {_next(arguments, argv, changes=changes)}"
    if streams.err.isatty():
        streams.err.write("\n")  # behind what the terminal shows of Ctrl-C, and a line of progress
    fix = f"{now}; next: {following}" if as_json else now
    problem = Problem(SLUG, title, "the command to end by itself", "SIGINT, as by Ctrl-C", fix)
    failed(title, Exit.INTERRUPTED, (problem,), streams, as_json=as_json)
    if not as_json:
        say(streams, f"next: {following}")
    return Exit.INTERRUPTED


def _how_it_is(arguments: argparse.Namespace) -> str:
    if arguments.title.startswith("layout "):
        return f"{_STAYS}; {start_sentence(request_of(arguments))}"
    if arguments.title == "staged purge":
        begun = (
            "what lies there as .purging can no longer be restored, and the next logdirctl staged purge goes on with it"
        )
        return f"{_STAYS}; {begun}; the rest is as it was"
    return f"{_STAYS}; {_GOES_ON}; the rest is as it was"


def _next(arguments: argparse.Namespace | None, argv: Sequence[str], *, changes: bool) -> str:
    """Return what to type next: the same command where it is harmless and has no override, else one that only lists."""
    same = " ".join(map(quoted, argv))
    is_bare = not any(word.startswith(_OVERRIDES) for word in argv)
    # metadata takes a file or a directory in place of a broker
    is_named = any(getattr(arguments, name, None) is not None for name in ("server_properties", "log_dirs"))
    where = None if arguments is None or not is_named else argv_of(arguments)
    if arguments is None or where is None:
        return same if is_bare else f"explain {SLUG}"
    if changes and arguments.title.startswith("layout "):
        return f"layout status {where}"
    if changes and arguments.title not in ("init", "uninstall"):
        return f"staged ls {where}"
    return same if is_bare else f"staged ls {where}"
