"""What the proof claims of metadata, requests and what follows from them.

Not here: the list of all claims (``claims``).
"""

from __future__ import annotations

from typing import Final

from tests.proof.claim import Claim
from tests.proof.sizes import Sizes

_WIRE: Final = "tests/logdir/wire"
_WIRE_DAMAGE: Final = Sizes(full=100_000, sample=2_000)

RECONCILE: Final = Claim(
    key="reconcile",
    text="every sequence of three requests from every start of a small world ends as KIP-516 says, or held",
    where=("tests/reconcile/test_exhaustive.py::test_every_sequence_from_every_start_ends_as_judged",),
    sizes={f"starts {how}": Sizes(full=1250, ci=125, sample=4) for how in ("confirmed", "limited")},
)
RECONCILE_KILLS: Final = Claim(
    key="reconcile-kills",
    text="a reconcile killed before a call and repeated comes to the same end, and follows nothing older meanwhile",
    where=("tests/tools/test_reconcile_killed.py::test_killed_before_any_call_and_said_again_it_reaches_the_same_end",),
    # One a call; CI takes every tenth, from the first.
    sizes={"kills": Sizes(full=100, ci=10)},
)
ROUND_TRIPS: Final = Claim(
    key="round-trips",
    text="random values of every version of every message and record come back from bytes and from JSON as they went",
    where=(f"{_WIRE}/test_codec.py::test_every_version_of_everything_comes_back_as_it_went",),
    sizes={"values": Sizes(full=100_000, sample=2_000), "versions": Sizes(full=335, ci=335)},
)
FAST_RECORDS: Final = Claim(
    key="fast-records",
    text="the fast reader of metadata records reads what the tables read, also of damaged ones",
    where=(f"{_WIRE}/test_metadata_fast.py::test_the_fast_reader_says_what_the_tables_say",),
    sizes={"records": _WIRE_DAMAGE, "damaged records": _WIRE_DAMAGE},
)
DAMAGED_BATCHES: Final = Claim(
    key="damaged-batches",
    text="damaged batches, records and frames are read or refused by a typed error that names the byte",
    where=(
        f"{_WIRE}/test_damage.py::test_no_damaged_file_is_read_beyond_its_whole_batches",
        f"{_WIRE}/test_damage.py::test_damaged_batches_whose_checksum_holds_raise_only_wire_errors",
        f"{_WIRE}/test_damage.py::test_damaged_frames_raise_only_wire_errors",
    ),
    sizes={"files": _WIRE_DAMAGE, "batches": _WIRE_DAMAGE, "frames": _WIRE_DAMAGE},
)
DAMAGED_LOGS: Final = Claim(
    key="damaged-logs",
    text="no image of a damaged metadata log has more than the whole batches before the damage; errors are typed",
    where=(
        "tests/logdir/cluster/test_damaged_logs.py::test_no_image_of_a_damaged_log_says_more_than_the_records_before_it",
        "tests/logdir/cluster/test_damaged_logs.py::test_forged_logs_whose_checksums_hold_raise_only_typed_errors",
    ),
    sizes={"logs": Sizes(full=100_000, sample=500), "logs whose checksums hold": Sizes(full=100_000, sample=500)},
)
GOLDEN_DUMPS: Final = Claim(
    key="golden-dumps",
    text="metadata logs and snapshots of stock nodes are read record for record as the stock decoder printed them",
    where=(
        f"{_WIRE}/test_metadata_golden.py::test_records_are_what_the_stock_decoder_prints",
        "tests/logdir/metadata/test_dump.py::test_a_dump_is_the_stock_decoders",
    ),
    sizes={
        "files": Sizes(full=8, ci=8),
        "records": Sizes(full=997, ci=997),
        "files dumped to the same lines": Sizes(full=8, ci=8),
    },
)
GOLDEN_FRAMES: Final = Claim(
    key="golden-frames",
    text="frames that stock nodes sent each other are read as Kafka reads them and written back byte for byte",
    where=(
        f"{_WIRE}/test_frames.py::test_requests_are_read_as_kafka_reads_them_and_written_back",
        f"{_WIRE}/test_frames.py::test_responses_are_read_as_kafka_reads_them_and_written_back",
    ),
    sizes={"requests": Sizes(full=132, ci=132), "responses": Sizes(full=132, ci=132)},
)
KAFKA_READS: Final = Claim(
    key="kafka-reads",
    text="stock classes read our bytes of random messages, records and batches as we mean them, and write the same",
    where=("tests/kafka/test_wire_agrees.py::test_stock_classes_read_and_write_what_we_do",),
    sizes={"releases": Sizes(full=2, ci=2)},
    needs="Java and Maven",
)
STOCK_DECODER: Final = Claim(
    key="stock-decoder",
    text="metadata logs and snapshots of real brokers under random changes are dumped as the stock decoder does",
    where=("tests/kafka/test_metadata_agrees.py::test_what_a_broker_logged_is_dumped_as_its_own_decoder_does",),
    sizes={"operations": Sizes(full=3_000, ci=300), "releases": Sizes(full=3, ci=1)},
    needs="Java and Maven",
)
RECOVERY_COMPARED: Final = Claim(
    key="recovery-compared",
    text="what a stock broker keeps at its start, after changes while it was down, is what we would have kept",
    where=(
        "tests/kafka/test_recovery_compared.py::test_what_a_broker_keeps_at_its_start_is_what_we_would_keep",
        "tests/kafka/test_recovery_compared.py::test_a_reassignment_cancelled_at_each_point",
    ),
    sizes={"releases": Sizes(full=2, ci=1), "reassignments cancelled": Sizes(full=11, ci=5)},
    needs="Java and Maven",
)
CLUSTER_JUDGED: Final = Claim(
    key="cluster-judged",
    text="a node of a real cluster under changes is never to lose what it is wanted for, and every true stray is found",
    where=("tests/kafka/test_cluster_judged.py::test_a_node_of_a_real_cluster_is_never_judged_wrongly",),
    sizes={"looks": Sizes(full=200, ci=20), "true strays found": Sizes(full=50, ci=5)},
    needs="Java and Maven",
)
