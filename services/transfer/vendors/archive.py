"""The file of an export, ZIP or JSON, read record by record and never held in memory as a whole."""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import ijson

from services.errors import InvalidInput
from services.json_levels import TooDeep, checked_events

_CHUNK = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_NO_YEAR = 1980
"""Year that a ZIP archive gives a member whose time is unknown."""
_SPACE = b" \t\r\n"


@dataclass(frozen=True)
class Place:
    """The place of a record."""

    file: str
    number: int
    """Number of the record in its file, from 1."""
    written_at: datetime
    """Time at which the file was written, as the file says."""

    def __str__(self) -> str:
        return f"{self.file}, record {self.number}"


class Archive:
    """The file of an export; methods raise `InvalidInput` if it cannot be read or holds no records."""

    def __init__(self, path: Path, *, members: str, lists: tuple[str, ...] = (), as_text: bool = False) -> None:
        """Take the path and what to read.

        Args:
            path: A ZIP archive, or one of its JSON files by itself.
            members: Regular expression for the files of an archive that hold records.
            lists: Fields in which a whole-file object may hold its records; without any of them the object is the
                record. A dot leads into a field: `chats.list`.
            as_text: Whether a file is one record, its text.
        """
        self._path = path
        self._members = re.compile(members)
        self._lists = lists
        self._as_text = as_text

    def size(self) -> int:
        """Return the number of bytes that will be read."""
        with ExitStack() as stack:
            archive = self._zip(stack)
            if archive is None:
                return self._path.stat().st_size
            return sum(archive.getinfo(name).file_size for name in self._names(archive))

    def records(self, read: Callable[[int], None]) -> Iterator[tuple[Place, Any]]:
        """Yield every record with its place; call `read` with the number of bytes as they are read. Raises
        `InvalidInput` if the file cannot be read, or breaks off; the message names the file and the record."""
        with ExitStack() as stack:
            archive = self._zip(stack)
            if archive is None:
                source = stack.enter_context(self._path.open("rb"))
                yield from self._of(self._path.name, _Counted(source, read), self._written_at())
                return
            for name in self._names(archive):
                written_at = self._written_at(archive.getinfo(name))
                with archive.open(name) as member:
                    yield from self._of(f"{self._path.name}/{name}", _Counted(member, read), written_at)

    def other_files(self) -> list[str]:
        """Return the names of the files of an archive that hold no records."""
        with ExitStack() as stack:
            archive = self._zip(stack)
            names = archive.namelist() if archive else []
            return sorted(name for name in names if not name.endswith("/") and not self._members.search(name))

    def _written_at(self, member: zipfile.ZipInfo | None = None) -> datetime:
        """Return when a file was written; for a member without a time, when the archive was."""
        if member is not None and member.date_time[0] > _NO_YEAR:
            with suppress(ValueError):
                return datetime(*member.date_time, tzinfo=UTC)
        return datetime.fromtimestamp(self._path.stat().st_mtime, UTC)

    def _zip(self, stack: ExitStack) -> zipfile.ZipFile | None:
        try:
            with self._path.open("rb") as file:
                if file.read(2) != b"PK":
                    return None
            return stack.enter_context(zipfile.ZipFile(self._path))
        except OSError as error:
            raise InvalidInput("FILE", f"{self._path} cannot be read: {error.strerror}") from None
        except zipfile.BadZipFile as error:
            raise InvalidInput("FILE", f"{self._path} is a damaged ZIP archive: {error}") from None

    def _names(self, archive: zipfile.ZipFile) -> list[str]:
        names = sorted(name for name in archive.namelist() if self._members.search(name))
        if not names:
            raise InvalidInput(
                "FILE",
                f"{self._path} has no file that matches {self._members.pattern}; is it an export of this product?",
            )
        return names

    def _of(self, name: str, source: "_Counted", written_at: datetime) -> Iterator[tuple[Place, Any]]:
        number = 0
        try:
            found = [_text_of(source)] if self._as_text else _items(source, self._lists)
            for number, record in enumerate(found, 1):
                yield Place(name, number, written_at), record
        except TooDeep as error:
            where = Place(name, number + 1, written_at)
            raise InvalidInput("FILE", f"{where}: {error}") from None
        except (ijson.JSONError, UnicodeDecodeError) as error:
            where = Place(name, number + 1, written_at)
            what = "text in UTF-8" if self._as_text else "JSON"
            raise InvalidInput("FILE", f"{where}: is not {what}, or breaks off ({_line(error)})") from None
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
            where = Place(name, number + 1, written_at)
            raise InvalidInput("FILE", f"{where}: cannot be unpacked ({_line(error)})") from None


class _Counted(io.RawIOBase):
    """A file that reports the bytes that are read."""

    def __init__(self, source: IO[bytes], read: Callable[[int], None]) -> None:
        self._source, self._read = source, read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._source.read(len(buffer))
        buffer[: len(found)] = found
        self._read(len(found))
        return len(found)


def _text_of(source: _Counted) -> str:
    """Return a file's text; messengers export at most 40,000 messages of a chat."""
    data = b"".join(iter(lambda: source.read(_CHUNK) or b"", b""))
    return data.decode("utf-8-sig")


def _items(source: _Counted, lists: tuple[str, ...]) -> Iterator[Any]:
    file = io.BufferedReader(source, _CHUNK)
    if file.peek().startswith(_BOM):
        file.read(len(_BOM))
    head = file.peek().lstrip(_SPACE)
    if head.startswith(b"["):
        prefix = "item"
    else:
        held = next((name for name in lists if f'"{name.partition(".")[0]}"'.encode() in head), None)
        prefix = f"{held}.item" if held else ""
    # Without a list, records may follow one another as lines.
    events = checked_events(ijson.basic_parse(file, use_float=True, multiple_values=not prefix))
    yield from ijson.items(ijson.parse(events), prefix)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
