r"""The value of ``sasl.jaas.config``: one login module with its options, quoted as Java reads it.

Errors show no part of the value: where a quote is missing, a password may stand anywhere in it.

Not here: which login module goes with which mechanism (``settings``).

Spec: org.apache.kafka.common.security.JaasConfig; java.io.StreamTokenizer.

>>> login = parse('a.b.PlainLoginModule required username="alice" password="a\\"b";')
>>> login.module, login.options["username"].reveal(), login.options["password"].reveal()
('PlainLoginModule', 'alice', 'a"b')
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from logdir.wire.client.secret import Secret

_TOKEN: Final = re.compile(
    r"""
      (?P<skip> [\x00-\x20]+ | /\*.*?(?:\*/|\Z) | /[^\r\n]* )
    | (?P<word> [A-Za-z_$\u00a0-\U0010ffff][A-Za-z0-9_$.\-\u00a0-\U0010ffff]* )
    | (?P<text> (?P<quote>["']) (?P<body> (?: (?!(?P=quote)) [^\\\r\n] | \\. )*) (?P=quote)? )
    | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED: Final = {"a": "\x07", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS: Final = frozenset(("required", "requisite", "sufficient", "optional"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A login module."""

    module: str
    """The name of the class, without its package."""
    options: dict[str, Secret]


class JaasError(Exception):
    """The value is not in the format; ``expected`` names what is missing and shows nothing of the value."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected


def parse(value: str) -> Login:
    """Parse the value of ``sasl.jaas.config``.

    Raises:
        JaasError: the value is not in the format, or has several login modules.
    """
    tokens = _tokens(value)
    module = _name(next(tokens, None), "the class of a login module first")
    flag = _name(next(tokens, None), "required, requisite, sufficient or optional after the login module")
    if flag.lower() not in _FLAGS:
        raise JaasError("required, requisite, sufficient or optional after the login module")
    options: dict[str, Secret] = {}
    for kind, text in tokens:
        if (kind, text) == ("mark", ";"):
            if next(tokens, None) is not None:
                raise JaasError("one login module and nothing after its semicolon")
            return Login(module=module.rpartition(".")[2], options=options)
        key = _name((kind, text), 'options of the form name="value", and a semicolon at the end')
        if next(tokens, None) != ("mark", "="):
            raise JaasError("= after the name of every option, and a semicolon at the end")
        options[key] = Secret(_name(next(tokens, None), "every value of an option in double quotes"))
    raise JaasError("a semicolon at the end")


def _tokens(value: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(value):
        kind, text = found.lastgroup or "", found[0]
        if kind == "text":
            text = _ESCAPE.sub(_resolved, found["body"])  # Java ends a text at the end of its line, too.
        if kind != "skip":
            yield kind, text


def _resolved(escape: re.Match[str]) -> str:
    text = escape[1]
    return chr(int(text, 8)) if text[0] in "01234567" else _ESCAPED.get(text, text)


def _name(token: tuple[str, str] | None, expected: str) -> str:
    if token is None or token[0] == "mark":
        raise JaasError(expected)
    return token[1]
