"""The files that `anamnesis kb ingest` takes into a knowledge base."""

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from api.cli.shell import WRONG_USE, fail
from services.errors import CallerError

if TYPE_CHECKING:
    from services.knowledge.documents import Documents


@dataclass(frozen=True)
class File:
    """A file and its name in the knowledge base."""

    path: Path
    source: str


@dataclass
class Report:
    """Outcome of the files."""

    created: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: list[dict[str, str]] = field(default_factory=list)

    @property
    def stored(self) -> int:
        """Files that the base holds now."""
        return self.created + self.replaced + self.unchanged


async def ingest_files(
    documents: "Documents",
    tenant_id: UUID,
    prefix: str,
    files: Sequence[File],
    report: Report,
    *,
    remove_missing: bool,
) -> None:
    """Ingest files one after the other, with a progress bar; record the outcome of each in the report.

    Raises:
        NotFound: there is no such knowledge base.
        DatabaseUnavailable: the database does not answer; files already ingested stay.
    """
    base_id = await documents.base_id(tenant_id, prefix)
    columns = (TextColumn("ingest"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=len(files))
        for file in files:
            try:
                data = await asyncio.to_thread(_read, file.path, documents.most_bytes)
                taken = await documents.ingest(tenant_id, base_id, file.source, data)
            except OSError as error:
                report.failed.append({"file": str(file.path), "reason": f"cannot be read: {error.strerror}"})
            except CallerError as error:
                report.failed.append({"file": str(file.path), "reason": error.message})
            else:
                setattr(report, taken.status, getattr(report, taken.status) + 1)
            progress.advance(bar)
    if remove_missing:
        gone = await documents.sources(tenant_id, base_id) - {file.source for file in files}
        report.removed = await documents.remove(tenant_id, base_id, sorted(gone))


def files_of(paths: Sequence[Path]) -> Iterator[File]:
    """Return each file once, with its name in the base: its path within the given folder."""
    for path in paths:
        if path.is_dir():
            for file in (each for each in sorted(path.rglob("*")) if each.is_file()):
                inside = file.relative_to(path)
                if not any(part.startswith(".") for part in inside.parts):
                    yield File(file, _shown(inside.as_posix()))
        elif path.exists():
            yield File(path, _shown(path.name))
        else:
            fail(f"there is no file or folder {path}", WRONG_USE)


def _shown(name: str) -> str:
    """A name as text: one whose bytes are not UTF-8 is often Chinese, packed on Windows."""
    if name.isprintable():
        return name
    try:
        return os.fsencode(name).decode("gb18030")
    except UnicodeDecodeError:
        return name


def each_once(files: Iterable[File]) -> list[File]:
    """Drop files that are named twice; end the command if two different ones have the same name."""
    by_source: dict[str, File] = {}
    for file in files:
        other = by_source.setdefault(file.source, file)
        if not other.path.samefile(file.path):
            reason = f"{other.path} and {file.path} would both be the document {file.source}"
            fail(f"{reason}; take in a folder that holds both, or give one another name", WRONG_USE)
    return list(by_source.values())


def _read(path: Path, most_bytes: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most_bytes + 1)  # one byte more shows that it is too large
