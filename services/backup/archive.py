"""The file of a backup: a ZIP archive with one member for each table, and a manifest that is written last.

A member holds the rows of a table in the text format of PostgreSQL's COPY, a line for each row. A file that was
cut off lacks the directory at its end and cannot be opened; a damaged one does not match its manifest.
"""

import hashlib
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg.abc import Buffer
from pydantic import BaseModel, Field

from services.errors import InvalidInput
from services.json_levels import check_levels

FORMAT = 1
_MANIFEST = "manifest.json"
_BLOCK = 1024 * 1024
_LARGEST_MANIFEST = 16 * 1024 * 1024
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError)
"""Errors of `zipfile` on damaged bytes, which may name an unknown compression or ask for a password."""


class StoredTable(BaseModel):
    """A table in a backup."""

    name: str = Field(pattern=r"^[a-z_][a-z0-9_]*$")
    columns: list[str]
    rows: int
    sha256: str


class Manifest(BaseModel):
    """The contents of a backup."""

    format: int
    service: str
    """Version of the service that wrote it."""
    revision: str
    """Revision of the schema, as the migrations number it."""
    made_at: str
    tables: list[StoredTable]
    sequences: dict[str, int]
    """Last value of each sequence."""

    def rows_of(self, *tables: str) -> dict[str, int]:
        """Return the number of rows of each of these tables."""
        rows = {table.name: table.rows for table in self.tables}
        return {name: rows.get(name, 0) for name in tables}


@dataclass
class ArchiveWriter:
    """A backup that is being written."""

    file: zipfile.ZipFile

    def add_table(self, name: str, columns: list[str], blocks: Iterable[Buffer]) -> StoredTable:
        """Write the rows of a table."""
        digest, rows = hashlib.sha256(), 0
        with self.file.open(_member(name), "w", force_zip64=True) as member:
            for block in blocks:
                data = bytes(block)
                member.write(data)
                digest.update(data)
                rows += data.count(b"\n")
        return StoredTable(name=name, columns=columns, rows=rows, sha256=digest.hexdigest())

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest."""
        self.file.writestr(_MANIFEST, manifest.model_dump_json(indent=1))


@contextmanager
def new_archive(path: Path) -> Iterator[ArchiveWriter]:
    """Write a backup; the complete file then appears under its name, readable only by its owner. Raises
    `InvalidInput` if the file exists already, and `OSError` if the file cannot be written."""
    if path.exists():
        raise InvalidInput(str(path), "there is such a file already")
    unfinished = path.with_name(f"{path.name}.part")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as target:
            with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
                yield ArchiveWriter(file)
            target.flush()
            os.fsync(target.fileno())
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)


class Archive:
    """A backup that is being read."""

    def __init__(self, path: Path, file: zipfile.ZipFile, manifest: Manifest) -> None:
        self._path = path
        self._file = file
        self.manifest = manifest

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator["Archive"]:
        """Open a backup. Raises `InvalidInput` if the file cannot be read, or is no complete backup."""
        try:
            file = zipfile.ZipFile(path)
        except OSError as error:
            raise InvalidInput(str(path), f"cannot be read: {error.strerror}") from None
        except _DAMAGE:
            raise _broken(path, "it is no backup, or was cut off") from None
        with file:
            yield cls(path, file, _manifest_of(path, file))

    def verify(self, on_rows: Callable[[int], None]) -> None:
        """Read everything and compare it with the manifest.

        Args:
            on_rows: Called with the number of rows that were read since the last call.

        Raises:
            InvalidInput: Something is missing, was added, or differs.
        """
        expected = {_MANIFEST, *(_member(table.name) for table in self.manifest.tables)}
        if sorted(self._file.namelist()) != sorted(expected):
            raise _broken(self._path, "its members are not those that its manifest names")
        for table in self.manifest.tables:
            digest, rows = hashlib.sha256(), 0
            for block in self.blocks(table):
                digest.update(block)
                count = block.count(b"\n")
                rows += count
                on_rows(count)
            if (digest.hexdigest(), rows) != (table.sha256, table.rows):
                raise _broken(self._path, f"the table {table.name} differs from the manifest")

    def blocks(self, table: StoredTable) -> Iterator[bytes]:
        """Yield the rows of a table in blocks, which may end within a row. Raises `InvalidInput` if the file is
        damaged."""
        try:
            with self._file.open(_member(table.name)) as member:
                while block := member.read(_BLOCK):
                    yield block
        except (OSError, *_DAMAGE):
            raise _broken(self._path, f"the table {table.name} cannot be read") from None


def _manifest_of(path: Path, file: zipfile.ZipFile) -> Manifest:
    try:
        if file.getinfo(_MANIFEST).file_size > _LARGEST_MANIFEST:
            raise _broken(path, "its manifest is too large")
        written = file.read(_MANIFEST)
        check_levels(written)
        manifest = Manifest.model_validate_json(written)
    except KeyError:
        raise _broken(path, "it has no manifest") from None
    except (ValueError, OSError, *_DAMAGE):
        raise _broken(path, "its manifest cannot be read") from None
    if manifest.format != FORMAT:
        raise InvalidInput(str(path), f"has the format {manifest.format}; this version reads {FORMAT}")
    return manifest


def _broken(path: Path, reason: str) -> InvalidInput:
    return InvalidInput(str(path), f"is not a whole backup: {reason}")


def _member(table: str) -> str:
    return f"tables/{table}.copy"
