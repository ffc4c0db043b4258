"""The calls that a worker makes: functions of this project that work on one log dir and are marked so, by name.

The first parameter of a call may be the worker's own open log dir or state, which is never sent. All other arguments
and the result are values (``codec``). The result of a call that returns an iterator is sent in parts.

Spec: design §5 "A port per log dir".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple, NewType, get_args, get_origin, get_type_hints

from logdir.disk.root.open_log_dir import LogDirTop, OpenLogDir
from logdir.worker import codec
from logdir.worker.state import WorkerState
from logdir.worker_call import is_worker_call

Descriptor = NewType("Descriptor", int)
"""A file descriptor of the process that started the worker, which gets a duplicate for the duration of the call."""

_OURS: Final = "logdir."


def name_of(call: Callable[..., object]) -> str:
    """Return the name of a call, as ``module:function``.

    Raises:
        ValueError: the function is not marked as a ``worker_call``.
    """
    name = f"{call.__module__}:{call.__qualname__}"
    if not is_worker_call(call):
        raise ValueError(f"no call of a worker: {name}")
    return name


@cache
def called(name: str) -> Callable[..., Any]:
    """Return the call with this name; only a module of this package is imported for it.

    Raises:
        ValueError: there is no function of this name that is marked as a ``worker_call``.
    """
    module, _, function = name.partition(":")
    found: Callable[..., Any] | None = None
    if module.startswith(_OURS):
        with suppress(ImportError):
            found = getattr(import_module(module), function, None)
    if found is None or not is_worker_call(found):
        raise ValueError(f"no call of a worker: {name}")
    return found


_OWN: Final[Mapping[object, type]] = {OpenLogDir: OpenLogDir, LogDirTop: OpenLogDir, WorkerState: WorkerState}
"""The worker's own object for each type of a first parameter; an OpenLogDir also serves as LogDirTop."""


class Signature(NamedTuple):
    """The encoding of a call's arguments and result."""

    own: type | None
    """The type of the worker's own first argument; ``None``: the call has none."""
    parameters: Mapping[str, codec.Codec]
    result: codec.Codec
    """Codec of the result; of one part, for a stream."""
    descriptors: frozenset[str]
    """Names of the ``Descriptor`` parameters."""
    is_stream: bool
    """Whether the call returns an iterator."""

    @classmethod
    @cache
    def of(cls, call: Callable[..., object]) -> Signature:
        """Return the signature of a call.

        Raises:
            TypeError: a parameter or the result cannot be sent.
        """
        hints = get_type_hints(call)
        names = list(inspect.signature(call).parameters)
        own = _OWN.get(hints[names[0]]) if names else None
        sent = names if own is None else names[1:]
        result = hints["return"]
        is_stream = get_origin(result) is Iterator
        return cls(
            own,
            {name: codec.codec_of(hints[name]) for name in sent},
            codec.codec_of(list[get_args(result)[0]] if is_stream else result),  # type: ignore[misc]  # at run time
            frozenset(name for name in sent if hints[name] is Descriptor),
            is_stream,
        )

    def encode(self, arguments: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments as JSON values, by parameter, without the first one if the worker adds it."""
        given = dict(zip(self.parameters, arguments, strict=False)) | dict(named)
        if len(arguments) > len(self.parameters):
            raise TypeError(f"{len(arguments)} arguments for {len(self.parameters)} parameters")
        found = {}
        for name, value in given.items():
            encode = self.parameters[name].encode
            found[name] = value if encode is None else encode(value)
        return found

    def sent_along(self, arguments: tuple[object, ...], named: Mapping[str, object]) -> list[int]:
        """Return the descriptors among the arguments; they are sent beside the JSON."""
        given = dict(zip(self.parameters, arguments, strict=False)) | dict(named)
        return [value for name, value in given.items() if name in self.descriptors and isinstance(value, int)]

    def decode(self, sent: Mapping[str, object], descriptors: list[int]) -> dict[str, object]:
        """Decode the arguments that ``encode`` encoded; remove those of this call from the received ``descriptors``."""
        found: dict[str, object] = {}
        for name, value in sent.items():
            if name in self.descriptors:
                found[name] = descriptors.pop(0)
                continue
            decode = self.parameters[name].decode
            found[name] = value if decode is None else decode(value)
        return found

    def encode_result(self, result: object) -> object:
        """Return a result as JSON."""
        return result if self.result.encode is None else self.result.encode(result)

    def decode_result(self, sent: object) -> Any:
        """Decode the result that ``encode_result`` encoded."""
        return sent if self.result.decode is None else self.result.decode(sent)
