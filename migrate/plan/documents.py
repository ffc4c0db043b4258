"""Plan documents of clean brokers, one each, written by Spark tasks through a data sink.

A task receives finished lines in order, and writes them from Arrow memory to file and digest without copying. It adds
the footer and returns the file's digest; the commit collects the digests in one small file for the driver.

On a cluster all machines must share the plan's directory. Not here: the content of a line (``steps``).

Spec: design §7.7 (``brokers/``).
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

_FORMAT = "logdird_documents"
_PARTIAL = ".partial"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A written plan document of one broker."""

    path: str
    """Path relative to the plan."""
    sha256: str
    """Digest of the whole file."""
    steps: int


@dataclass
class _Written(WriterCommitMessage):
    documents: list[tuple[str, str, int]] = field(default_factory=list)


class DocumentSink(DataSource):
    """The Spark data sink: ``directory`` is the place of the documents, ``manifest`` the file that will list them."""

    @classmethod
    def name(cls) -> str:
        """Return the sink's name in Spark."""
        return _FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer of which each task gets a copy."""
        return _DocumentWriter(Path(self.options["directory"]), Path(self.options["manifest"]))


class _DocumentWriter(DataSourceArrowWriter):
    def __init__(self, directory: Path, manifest: Path) -> None:
        self._directory = directory
        self._manifest = manifest

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Written:
        """Write the documents of one task. Several attempts of a task write the same bytes."""
        written = _Written()
        current: _OpenDocument | None = None
        try:
            for batch in iterator:
                starts = pc.indices_nonzero(pc.is_valid(batch.column("path"))).to_pylist()
                edges = sorted({0, *starts, batch.num_rows})
                for low, high in pairwise(edges):
                    piece = batch.slice(low, high - low)
                    path, broker = piece.column("path")[0].as_py(), piece.column("broker")[0].as_py()
                    if path is not None:
                        _finish(current, written)
                        current = _OpenDocument(self._directory, path, broker)
                    if current is None:
                        raise ValueError(f"a step of broker {broker} came before its document's header")
                    current.append(piece)
            _finish(current, written)
        except BaseException:
            if current is not None:
                current.discard()
            raise
        return written

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Write paths, digests and steps of all documents to the manifest file."""
        documents = [entry for message in messages if isinstance(message, _Written) for entry in message.documents]
        self._manifest.write_text(json.dumps(sorted(documents)), encoding="utf-8")

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing: the caller removes the whole directory."""


class _OpenDocument:
    def __init__(self, directory: Path, path: str, broker: int) -> None:
        self._path = path
        self._broker = broker
        self._final = directory / path
        self._final.parent.mkdir(parents=True, exist_ok=True)
        self._partial = self._final.with_name(f".{self._final.name}.{secrets.token_hex(4)}{_PARTIAL}")
        self._file: IO[bytes] = self._partial.open("wb")
        self._digest = hashlib.sha256()
        self._lines = 0

    def append(self, piece: pa.RecordBatch) -> None:
        brokers = pc.min_max(piece.column("broker"))
        if brokers["min"].as_py() != self._broker or brokers["max"].as_py() != self._broker:
            raise ValueError(f"steps of other brokers came into the document {self._path}")
        lines = _bytes_of(piece.column("line"))
        self._file.write(lines)
        self._digest.update(lines)
        self._lines += piece.num_rows

    def close(self) -> tuple[str, str, int]:
        steps = self._lines - 1
        footer = f'{{"sha256":"{self._digest.hexdigest()}","steps":{steps}}}\n'.encode("ascii")
        self._file.write(footer)
        self._digest.update(footer)
        self._file.close()
        self._partial.replace(self._final)
        return self._path, self._digest.hexdigest(), steps

    def discard(self) -> None:
        self._file.close()
        with suppress(OSError):
            self._partial.unlink()


def _finish(current: _OpenDocument | None, written: _Written) -> None:
    if current is not None:
        written.documents.append(current.close())


def _bytes_of(lines: pa.Array) -> memoryview:
    """Return all texts of an array without nulls, concatenated, without copying."""
    offsets, data = lines.buffers()[1:]
    width = 8 if pa.types.is_large_string(lines.type) else 4
    ends = memoryview(offsets).cast("q" if width == 8 else "i")
    return memoryview(data)[ends[lines.offset] : ends[lines.offset + len(lines)]]


def write_documents(
    spark: SparkSession, lines: DataFrame, directory: Path, expected: Mapping[str, int]
) -> list[Document]:
    """Write the documents of all clean brokers.

    Args:
        spark: The session.
        lines: ``broker``, ``path``, ``line``: rows of a broker in one partition, together and in order.
        directory: The unfinished directory of the plan.
        expected: Number of steps of each document, by its path.

    Returns:
        The documents by path.

    Raises:
        ValueError: the numbers of steps are not the expected ones, so that the plan must not be published.
    """
    manifest = directory / f".documents.{secrets.token_hex(4)}.json"
    spark.dataSource.register(DocumentSink)
    sink = lines.write.format(_FORMAT).mode("append")
    sink.option("directory", str(directory)).option("manifest", str(manifest)).save()
    documents = [Document(path=path, sha256=sha, steps=steps) for path, sha, steps in json.loads(manifest.read_text())]
    manifest.unlink()
    found = {document.path: document.steps for document in documents}
    if found != dict(expected) or len(found) != len(documents):
        wrong = sorted(set(found.items()) ^ set(expected.items()))[:3]
        raise ValueError(f"documents written do not hold the steps counted: {wrong}")
    for folder, _, names in os.walk(directory / "brokers"):  # Leftovers of killed task attempts.
        for name in names:
            if name.endswith(_PARTIAL):
                (Path(folder) / name).unlink()
    return documents
