"""Requests and responses: their API, versions and table.

Not here: the tables (``messages``), headers and frames (``frames``).

Spec: kafka-formats §11; design §4 on the two forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from logdir.wire.schema import NEVER, Field, Table, Versions


class Direction(StrEnum):
    """The direction of a message: request or response."""

    REQUEST = "request"
    RESPONSE = "response"


class Form(StrEnum):
    """The origin of a schema, where a KIP's text and the releases differ."""

    SHIPPED = "shipped"
    KIP = "kip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message, in all shipped versions, or in the version of a KIP."""

    key: int
    """The API key."""
    name: str
    """The API name, such as ``LeaderAndIsr``."""
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
        key: The API key.
        name: The API name.
        versions: The existing versions.
        flexible: The flexible versions; empty: none.
        request: The table of the request.
        response: The table of the response.
        form: The origin of the schema.
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
