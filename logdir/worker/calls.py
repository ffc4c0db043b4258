"""Registry of the calls that a worker makes: functions of this package that work on one log dir, by name.

The first parameter of a call may be the worker's own open log dir or state, which is never sent. All other arguments
and the result are values (``codec``). The result of a call that returns an iterator is sent in parts.

Spec: design §5 "A port per log dir".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple, NewType, get_args, get_origin, get_type_hints

from logdir.disk.root.open_log_dir import LogDirTop, OpenLogDir
from logdir.worker import codec
from logdir.worker.state import WorkerState

Descriptor = NewType("Descriptor", int)
"""A file descriptor of the process that started the worker, which gets a duplicate for the duration of the call."""

CALLS: Final = frozenset(
    {
        "logdir.disk.replica.staging:stage",
        "logdir.disk.replica.give_id:give_id",
        "logdir.disk.replica.layout_view:look",
        "logdir.disk.recover_log_dir:recover",
        "logdir.disk.replica.relayout:to_ids",
        "logdir.disk.replica.relayout:to_names",
        "logdir.disk.replica.staging:hold",
        "logdir.disk.replica.staging:restore",
        "logdir.worker.operations:capture",
        "logdir.worker.operations:capture_step",
        "logdir.worker.operations:export_aside",
        "logdir.worker.operations:inodes_alone",
        "logdir.worker.operations:place_problems",
        "logdir.worker.operations:purge",
        "logdir.worker.inventory:write_inventory",
        "logdir.observe.answering:touch",
        "logdir.observe.birth:births",
        "logdir.observe.leaving:leaving",
        "logdir.observe.log_end:log_end",
        "logdir.disk.lock_holder:is_locked",
        "logdir.observe.mounts:identity_at",
        "logdir.observe.mounts:owner_at",
        "logdir.observe.outside:kept_free",
        "logdir.observe.outside:require_outside_of",
        "logdir.disk.kernel.file_system:fs_type_at",
        "logdir.service.cluster.cluster_state:read_cluster_state",
        "logdir.service.cluster.cluster_state:read_stamp",
        "logdir.service.cluster.ends:read_with_ends",
        "logdir.service.cluster.image_source:read_desired",
        "logdir.service.layout_status:look_at",
        "logdir.service.metadata:complete",
        "logdir.service.metadata:has_metadata_log",
        "logdir.service.metadata:is_over",
        "logdir.service.metadata:list_lines",
        "logdir.service.metadata:list_nodes",
        "logdir.service.metadata:open_metadata",
        "logdir.service.metadata:run_line",
        "logdir.service.metadata_dump:dump_batches",
        "logdir.service.metadata_dump:dump_lines",
        "logdir.service.metadata_dump:end_of_dump",
        "logdir.service.metadata_dump:files_of",
        "logdir.service.cluster.own_log:own_log",
        "logdir.service.batch.purge_recheck:look_again",
        "logdir.worker.glance:glance",
        "logdir.worker.look:look_again",
        "logdir.worker.look:look_deep",
        "logdir.worker.work_root:make_root",
        "logdir.worker.work_root:plan_root",
        "logdir.worker.work_root:prove_use",
        "logdir.worker.work_root:put_back",
        *(
            f"logdir.worker.state:{name}"
            for name in (
                "failed_syncs",
                "open_root",
                "release_kafka_lock",
                "require_in_place",
                "require_kafka_lock",
                "require_owner_lock",
                "take_kafka_lock",
                "take_owner_lock",
            )
        ),
        *(
            f"logdir.worker.directory:{name}"
            for name in (
                "adopt",
                "close",
                "identity",
                "link",
                "make",
                "names",
                "open_in",
                "open_top",
                "own_stat",
                "read",
                "remove",
                "rename",
                "replace",
                "require_changeable",
                "space",
                "stat",
                "sync",
                "sync_disk",
                "sync_file",
                "truncate",
                "types",
                "unlink",
                "write",
            )
        ),
    }
)
"""Names of the allowed calls, as ``module:function``."""


def name_of(call: Callable[..., object]) -> str:
    """Return the name of a call.

    Raises:
        ValueError: the call is not in ``CALLS``.
    """
    name = f"{call.__module__}:{call.__qualname__}"
    if name not in CALLS:
        raise ValueError(f"no call of a worker: {name}")
    return name


@cache
def called(name: str) -> Callable[..., Any]:
    """Return the call with this name.

    Raises:
        ValueError: the name is not in ``CALLS``.
    """
    if name not in CALLS:
        raise ValueError(f"no call of a worker: {name}")
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
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
