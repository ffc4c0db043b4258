"""How far the cluster was followed: of several records, and before the first action."""

from __future__ import annotations

from dataclasses import replace

from logdir.cluster.image import Image, Source
from logdir.decide.image.position import after_image, highest, mark_of, readable, until_done
from logdir.formats.own import controller_file
from logdir.formats.own.controller_file import REQUESTS_UNKNOWN, ControllerFile, MetadataMark, RequestMark

FIRST = controller_file.begin("MkU3OEVBNTcwNTJENDM2Qk", 1)
ID = "eXOy6xj-Q8ivrWAlsZGnkw"


def at(epoch: int, offset: int, **more: object) -> ControllerFile:
    return replace(FIRST, metadata=MetadataMark(epoch=epoch, offset=offset), **more)  # type: ignore[arg-type]


def asked(sequence: int, *, epoch: int = 5, wanted: bool = False) -> ControllerFile:
    mark = RequestMark(controller_epoch=epoch, sequence=sequence)
    return replace(FIRST, requests=mark, is_full_wanted=wanted, broker_epoch=9)


def test_one_that_is_lost_is_all_that_is_known() -> None:
    assert highest([]) is None
    assert highest([at(1, 5), None]) is None
    assert highest([None]) is None
    assert highest([FIRST, FIRST]) == FIRST


def test_what_is_left_beside_a_lost_one_is_known_and_a_request_may_have_been_missed() -> None:
    assert readable([]) is None
    assert readable([None, None]) is None
    assert readable([FIRST, asked(7)]) == highest([FIRST, asked(7)])
    for records in ([None, asked(7), asked(6)], [asked(6), None, asked(7)], [asked(7), None]):
        assert readable(records) == replace(asked(7), is_full_wanted=True)
    # Only the lost one may have held a request.
    assert readable([FIRST, None]) == replace(FIRST, requests=REQUESTS_UNKNOWN)


def test_a43_no_confirmed_image_forgets_what_the_other_disks_hold_of_requests() -> None:
    """One file is lost: the record that replaces it everywhere starts from those that are left."""
    left = replace(asked(500), metadata=MetadataMark(epoch=7, offset=9000), incarnation_id=ID)
    image = Image(source=Source.ZNODES, origin="/z", node_id=1, cluster_id=FIRST.cluster_id)
    confirmed = {"is_confirmed": True, "is_broker_running": False}
    assert after_image(image, left, **confirmed) == left
    log = replace(image, source=Source.METADATA_LOG, epoch=3, offset=100)
    assert after_image(log, left, **confirmed) == replace(left, metadata=MetadataMark(epoch=3, offset=100))
    assert after_image(log, left, is_confirmed=False, is_broker_running=False) == left
    lost = replace(FIRST, requests=REQUESTS_UNKNOWN)
    assert after_image(image, None, **confirmed) == lost
    assert until_done(lost, None) == lost


def test_what_one_root_has_and_another_lacks_was_cut_off() -> None:
    for records in ([at(3, 70), at(3, 50)], [at(3, 50), at(3, 70)], [FIRST, at(3, 70)], [at(3, 70), FIRST]):
        found = highest(records)
        assert found is not None
        assert found.metadata == MetadataMark(epoch=3, offset=70)


def test_a_measure_that_was_lowered_on_some_disks_only_stays_where_it_was() -> None:
    found = highest([at(7, 20), at(5, 90)])
    assert found is not None
    assert found.metadata == MetadataMark(epoch=7, offset=90)


def test_no_cluster_id_is_forgotten_that_one_of_the_records_has() -> None:
    unsaid = replace(FIRST, cluster_id=None)
    for records in ([FIRST, unsaid], [unsaid, FIRST]):
        found = highest(records)
        assert found is not None
        assert found.cluster_id == "MkU3OEVBNTcwNTJENDM2Qk"


def test_full_wanted_is_as_after_the_last_request() -> None:
    for records in ([asked(7), asked(6, wanted=True)], [asked(6, wanted=True), asked(7)], [FIRST, asked(7)]):
        found = highest(records)
        assert found is not None
        assert (found.requests, found.is_full_wanted) == (asked(7).requests, False)
    found = highest([asked(7), asked(7, wanted=True)])
    assert found is not None
    assert found.is_full_wanted
    later = highest([asked(1, epoch=6, wanted=True), asked(7)])
    assert later is not None
    assert (later.requests, later.is_full_wanted) == (RequestMark(controller_epoch=6, sequence=1), True)


def test_the_last_incarnation_is_that_of_the_newest_record_that_has_one() -> None:
    found = highest([at(1, 5, incarnation_id="old"), at(3, 50, incarnation_id=ID), FIRST])
    assert found is not None
    assert found.incarnation_id == ID


def test_until_a_document_is_done_it_may_be_given_again_and_nothing_older_may() -> None:
    begun = until_done(asked(7), asked(3, wanted=True))
    assert begun.requests == RequestMark(controller_epoch=5, sequence=6)
    # That a FULL was wanted before is forgotten only when this one is done.
    assert begun.is_full_wanted
    assert not until_done(asked(7), asked(3)).is_full_wanted
    assert until_done(asked(7), None).is_full_wanted
    assert until_done(asked(1), FIRST).requests == RequestMark(controller_epoch=5, sequence=0)
    parsed = controller_file.parse(controller_file.render(until_done(asked(1), FIRST)))
    assert parsed.requests == RequestMark(controller_epoch=5, sequence=0)


def test_no_image_of_the_metadata_log_is_without_a_mark_but_the_empty_one() -> None:
    """An empty image has epoch -1; the first leader may have epoch 0."""
    image = Image(source=Source.METADATA_LOG, origin="/m", node_id=1, cluster_id=FIRST.cluster_id, epoch=-1)
    assert mark_of(image) is None
    for epoch in (0, 1, 7):
        assert mark_of(replace(image, epoch=epoch, offset=5)) == MetadataMark(epoch=epoch, offset=5)
    assert mark_of(replace(image, source=Source.ZNODES, epoch=7, offset=5)) is None


def test_an_image_counts_at_once() -> None:
    assert until_done(at(3, 70), at(3, 50)) == at(3, 70)
    both = replace(asked(7), metadata=MetadataMark(epoch=3, offset=70))
    assert until_done(both, asked(7)) == both
