"""Which calls a worker makes, and that it makes no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.worker import directory
from logdir.worker.calls import Descriptor, Signature, called, name_of
from logdir.worker.start import start
from logdir.worker.state import WorkerState
from tests.logdir.worker.every_call import names


@pytest.mark.parametrize("name", names())
def test_every_call_resolves_to_a_function_of_its_name_whose_values_can_be_sent(name: str) -> None:
    call = called(name)
    assert name_of(call) == name
    signature = Signature.of(call)
    assert signature.own in (None, OpenLogDir, WorkerState)
    assert not {"opened", "site"} & signature.parameters.keys()


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "os:unlink",
        "logdir.disk.replica.staging:open",
        "logdir.worker.calls:called",
        "logdir.worker.calls:import_module",
        "logdir.none:none",
        "logdir.:stage",
        "tests.logdir.worker.test_calls:_of_the_test",
        "",
        ":",
        "stage",
    ],
)
def test_nothing_else_is_called(name: str) -> None:
    with pytest.raises(ValueError, match="no call of a worker"):
        called(name)


def test_every_ring_but_the_innermost_has_calls() -> None:
    """So that the test above is known to have found them."""
    assert {name.split(".")[1] for name in names()} == {"disk", "observe", "worker", "service"}


def test_what_is_no_call_is_not_even_sent(workers: None, tmp_path: Path) -> None:
    (port,) = start((str(tmp_path),), 10_000)
    try:
        with pytest.raises(ValueError, match="no call of a worker"):
            port.run(_of_the_test, 1)
    finally:
        port.close()


def _of_the_test(number: int) -> int:
    return number


def test_more_arguments_than_parameters_are_refused() -> None:
    with pytest.raises(TypeError, match="2 arguments for 1 parameters"):
        Signature.of(directory.names).encode((1, 2), {})


def _reads(text: str, file: Descriptor, other: Descriptor) -> str:
    return f"{text} {file} {other}"


def test_descriptors_go_beside_the_values_in_their_order() -> None:
    signature = Signature.of(_reads)
    assert signature.descriptors == {"file", "other"}
    assert signature.sent_along(("a",), {"file": 4, "other": 5}) == [4, 5]
    sent = signature.encode(("a", 4, 5), {})
    received = [8, 9]
    assert signature.decode(sent, received) == {"text": "a", "file": 8, "other": 9}
    assert received == []
