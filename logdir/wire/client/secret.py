"""A value that must not appear in a log, an error or a representation: a password, a private key.

Spec: org.apache.kafka.common.config.types.Password, which also hides its value.
"""

from __future__ import annotations

from typing import NoReturn


class Secret:
    """A text that is only shown to who asks for it by name.

    >>> Secret("alice-secret"), f"{Secret('alice-secret')}"
    (Secret(hidden), 'hidden')
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the value."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __str__(self) -> str:
        return "hidden"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(Secret)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written to a stream")
