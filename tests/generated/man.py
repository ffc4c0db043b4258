"""The manual pages: one for each command of ``logdirctl``, one for ``logdird`` and one for its configuration.

Made from the parsers and from the table of keys, in the macros of man(7).

Spec: groff_man(7), groff_char(7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from logdir.daemon.config import KEYS
from logdir.daemon.config.keys import When
from logdir.paths import PAUSE_FILE, SKIP_GATE
from tests.generated.commands import Argument, Command, logdirctl, logdird
from tests.generated.marked import write_all
from tools.logdirctl.commands import help_text

HOME: Final = Path(__file__).parents[2] / "docs" / "man"
_TOP: Final = "Made by python \\-m tests.generated: change what it is made from, not this page."
_ESCAPES: Final = {
    "\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", '"': "\\(dq",
}  # fmt: skip
_GROUP: Final = "Each command has a page of its own, as \\fBlogdirctl\\-inventory\\fR(1)."
_SELECTOR: Final = (
    "A command that names partitions takes one selector: the name of a topic, a topic id, NAME-PARTITION, "
    "ID_PARTITION, or a glob."
)
_APPLY: Final = (
    "Nothing is changed without --apply: a command prints what it would do. Every listing ends with the next command "
    "to type. With --json a command prints one JSON object on standard output."
)
_SERVES: Final = (
    "logdird runs beside a stock Kafka broker, as the owner of its log dirs and without capabilities. It captures by "
    "hard links what the broker is about to remove, so that a deleted topic can be brought back, and removes it for "
    "good when its deadline has passed."
)
_RELOAD: Final = (
    "Read the configuration again. If it does not fit, the former one stays in force, and the status says why. Log "
    "dirs that were let go by logdirctl disk release are opened again."
)
_SOCKET: Final = "Its control socket: root and the owner of the log dirs may have something changed by it."
_SIGNALS: Final = (
    ("SIGHUP", _RELOAD),
    ("SIGTERM, SIGINT", "End in order: what is in hand is finished first."),
)
_FILES: Final = (
    ("/etc/logdird/NAME.yaml", "The configuration of one daemon: logdird.yaml(5)."),
    ("/run/logdird/NAME.sock", _SOCKET),
    ("/var/lib/logdird/NAME", "Its state: history.jsonl, gaps.json, and the inbox of request documents."),
    (f"/var/lib/logdird/NAME/{PAUSE_FILE}", "While this file exists, nothing is purged."),
)
_ENVIRONMENT: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "logdirctl handover": (
        (
            SKIP_GATE,
            "Set to 1, it lets the broker start: nothing is looked at, and the exit status is 0 (docs/daemon.md).",
        ),
    ),
}
"""Variables that a command reads, by its words."""
_FORM: Final = (
    "One YAML file for one broker. Log dirs, node id and delete delay are read from the broker's own configuration and "
    "never repeated here. An unknown or repeated key is refused, and all problems are reported at once. Relative paths "
    "start at the folder of the file. A delay may have a unit: 4h, 30m, 90s, 14400000ms. logdird --config FILE "
    "--check-config checks the file and leaves."
)


def escaped(text: str) -> str:
    """Return a text as roff shows it: no escape, no macro, every hyphen one that can be typed."""
    found = "".join(_ESCAPES.get(c, c if c.isascii() else f"\\[u{ord(c):04X}]") for c in text)
    return f"\\&{found}" if found.startswith(".") else found


def _bold(text: str) -> str:
    return f"\\fB{escaped(text)}\\fR"


def _italic(text: str) -> str:
    return f"\\fI{escaped(text)}\\fR"


def _title(name: str, section: int, summary: str) -> Iterator[str]:
    yield f'.\\" {_TOP}'
    yield f'.TH {escaped(name.upper())} {section} "" "logdird" "logdird"'
    yield ".SH NAME"
    yield f"{escaped(name)} \\- {escaped(summary)}"


def _items(pairs: Sequence[tuple[str, str]], mark: Callable[[str], str] = _bold) -> Iterator[str]:
    for name, text in pairs:
        yield from (".TP", mark(name), escaped(text))


def shape(one: Argument) -> str:
    """Return an argument as the synopsis shows it, with its fonts."""
    if not one.names:
        found = _italic(one.metavar) + ("..." if one.is_repeated else "")
        return found if one.is_required else f"[{found}]"
    return _bold(one.names[-1]) + (f" {_italic(one.metavar)}" if one.metavar else "")


def _synopsis(command: Command) -> str:
    """Return the command with all that must be typed; what may be typed is one word."""
    parts, seen = [_bold(" ".join(command.words))], set[tuple[str, ...]]()
    if command.below:
        return f"{parts[0]} {_italic('COMMAND')} ..."
    for one in command.arguments:
        if one.is_one_needed and one.others not in seen:
            seen.add(one.others)
            parts.append("{" + " | ".join(shape(two) for two in command.arguments if two.others == one.others) + "}")
        elif one.is_required and one.names:
            parts.append(shape(one))
    parts += [shape(one) for one in command.arguments if not one.names]
    return " ".join((*parts, f"[{_italic('OPTION')}...]"))


def _options(arguments: Sequence[Argument]) -> Iterator[str]:
    for one in arguments:
        value = f" {_italic(one.metavar)}" if one.metavar else ""
        names = ", ".join(f"{_bold(name)}{value}" for name in one.names) or _italic(one.metavar)
        yield from (".TP", names)
        notes = [one.text] if one.text else []
        if one.names and one.is_repeated and "repeated" not in one.text:
            notes.append("It may be repeated.")
        notes += [f"Only one of {', '.join(one.others)} may be given."] if one.others else []
        yield escaped(" ".join(f"{note.rstrip('.')}." for note in notes))


def page_of(command: Command) -> str:
    """Return the page of one command of ``logdirctl``."""
    lines = [*_title("-".join(command.words), 1, command.summary), ".SH SYNOPSIS"]
    for number, one in enumerate(command.leaves):
        lines += [".br"] if number else []
        lines.append(_synopsis(one))
    lines += [".SH DESCRIPTION", escaped(command.description)]
    if command.below:
        lines.append(".SH COMMANDS")
        for one in command.below:
            lines += [f".SS {escaped(' '.join(one.words[1:]))}", escaped(one.description or f"{one.summary}.")]
            lines += _options(one.arguments)
            if one.statuses:
                lines += [".PP", "Exit status:", *_items(one.statuses)]
    else:
        lines += [".SH OPTIONS", *_options(command.arguments)]
        lines += [".SH EXIT STATUS", *_items(command.statuses)] if command.statuses else []
        variables = _ENVIRONMENT.get(" ".join(command.words), ())
        lines += [".SH ENVIRONMENT", *_items(variables)] if variables else []
    lines += [".SH SEE ALSO", "\\fBlogdirctl\\fR(1), \\fBlogdird\\fR(8), \\fBlogdird.yaml\\fR(5)"]
    return _text(lines)


def overview() -> str:
    """Return the page of ``logdirctl`` itself."""
    top, text = logdirctl(), help_text()
    statuses = " ".join(text.partition("exit status: ")[2].partition("next: ")[0].split())
    pairs = [one.partition(" ")[::2] for one in statuses.split(", ")]
    lines = [
        *_title("logdirctl", 1, "look at, plan for and change the log directories of Kafka brokers"),
        ".SH SYNOPSIS",
        f"{_bold('logdirctl')} {_italic('COMMAND')} ...",
        ".SH DESCRIPTION",
        escaped(next(line for line in text.splitlines() if line.startswith("Look at"))),
        ".PP",
        escaped(_APPLY),
        ".PP",
        escaped(_SELECTOR),
        ".SH COMMANDS",
        _GROUP,
        *_items([(one.words[1], one.summary) for one in top.below]),
        ".SH OPTIONS",
        *_options(top.arguments),
        ".SH EXIT STATUS",
        *_items([(number, meaning) for number, meaning in pairs]),
        ".SH FILES",
        *_items(_FILES),
        ".SH SEE ALSO",
        ", ".join(
            [f"\\fB{escaped('-'.join(one.words))}\\fR(1)" for one in top.below]
            + ["\\fBlogdird\\fR(8)", "\\fBlogdird.yaml\\fR(5)"]
        ),
    ]
    return _text(lines)


def daemon_page() -> str:
    """Return the page of ``logdird``."""
    command = logdird()
    lines = [
        *_title("logdird", 8, command.summary),
        ".SH SYNOPSIS",
        _synopsis(command),
        ".SH DESCRIPTION",
        escaped(_SERVES),
        ".SH OPTIONS",
        *_options(command.arguments),
        ".SH SIGNALS",
        *_items(_SIGNALS),
        ".SH EXIT STATUS",
        *_items(command.statuses),
        ".SH FILES",
        *_items(_FILES),
        ".SH SEE ALSO",
        "\\fBlogdirctl\\fR(1), \\fBlogdird.yaml\\fR(5)",
    ]
    return _text(lines)


def configuration_page() -> str:
    """Return the page of the configuration."""
    lines = [
        *_title("logdird.yaml", 5, "configuration of logdird"),
        ".SH SYNOPSIS",
        _bold("/etc/logdird/NAME.yaml"),
        ".SH DESCRIPTION",
        escaped(_FORM),
        ".SH KEYS",
    ]
    for key in KEYS:
        unit = "" if key.unit == "-" else f", in {key.unit}"
        again = "When the file is read again (SIGHUP) it takes effect at once."
        if key.when is When.RESTART:
            again = "A change takes effect when logdird is started again."
        lines += [".TP", f"{_bold(key.name)} ({escaped(f'{key.type}{unit}')}; default: {escaped(key.default_text)})"]
        lines.append(escaped(f"{key.text[0].upper()}{key.text[1:]}. {again}"))
    lines += [
        ".SH EXAMPLE",
        ".nf",
        escaped("server.properties: /etc/kafka/server.properties"),
        ".fi",
        ".SH SEE ALSO",
        "\\fBlogdird\\fR(8), \\fBlogdirctl\\fR(1)",
    ]
    return _text(lines)


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


FILES: Final[dict[Path, Callable[[], str]]] = {
    HOME / "logdirctl.1": overview,
    HOME / "logdird.8": daemon_page,
    HOME / "logdird.yaml.5": configuration_page,
    **{HOME / f"{'-'.join(one.words)}.1": partial(page_of, one) for one in logdirctl().below},
}


def write() -> str:
    """Write all of it again; return the names of the files."""
    return write_all(FILES)
