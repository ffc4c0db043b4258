"""Requests and responses: their API, versions and field table.

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
    """Whether a schema is that of Kafka's releases or that of a KIP's text, where the two differ."""

    SHIPPED = "shipped"
    KIP = "kip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The request or response of an API, in all shipped versions or in the version of a KIP."""

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
        """The fields of all versions, in the order of the binary format."""
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
        flexible: The flexible versions (compact lengths, tagged fields); empty: none.
        request: The field table of the request, in the notation of ``schema``.
        response: The field table of the response.
        form: Whether the schema is that of the releases or of a KIP's text.
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
