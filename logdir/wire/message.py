"""What a request or response is: its API, versions and table.

Not here: the tables (``messages``), headers and frames (``frames``).

Spec: kafka-formats §11; design §4 on the two forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from logdir.wire.schema import NEVER, Field, Table, Versions


class Direction(StrEnum):
    """Who speaks."""

    REQUEST = "request"
    RESPONSE = "response"


class Form(StrEnum):
    """Whose layout, where a KIP's text and the releases part."""

    SHIPPED = "shipped"
    KIP = "kip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message, in all versions that were ever shipped, or in the one a KIP lays out."""

    key: int
    """Of the API."""
    name: str
    """Of the API: ``LeaderAndIsr``."""
    direction: Direction
    versions: Versions
    flexible: Versions
    table: Table
    form: Form = Form.SHIPPED

    @property
    def fields(self) -> tuple[Field, ...]:
        """The table of all versions."""
        return self.table.fields


def api(
    key: int,
    name: str,
    versions: str,
    flexible: str = "",
    *,
    request: str,
    response: str,
    form: Form = Form.SHIPPED,
) -> tuple[Message, Message]:
    """Return request and response of an API.

    Args:
        key: Of the API.
        name: Of the API.
        versions: Those there are.
        flexible: Those that are flexible; none if empty.
        request: Its table.
        response: Its table.
        form: Whose layout it is.
    """
    made = [
        Message(
            key=key,
            name=name,
            direction=direction,
            versions=Versions.parse(versions),
            flexible=Versions.parse(flexible) if flexible else NEVER,
            table=Table(text),
            form=form,
        )
        for direction, text in ((Direction.REQUEST, request), (Direction.RESPONSE, response))
    ]
    return made[0], made[1]
