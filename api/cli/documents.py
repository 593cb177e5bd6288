"""The files that `anamnesis kb ingest` takes into a knowledge base."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from anamnesis_client import Anamnesis, ServiceError
from api.cli.shell import WRONG_USE, fail, progress_bar

_OF_THE_FILE = frozenset(
    {
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    }
)
"""The service refuses this document, and may take others."""
_MOST_BYTES = 65 * 1024 * 1024
"""The service accepts no larger document with any setting."""


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


def ingest_files(
    service: Anamnesis, prefix: str, files: Sequence[File], report: Report, *, remove_missing: bool
) -> None:
    """Ingest files one after the other, with a progress bar; record the outcome of each in the report.

    Raises:
        ServiceError: there is no such knowledge base, or the service cannot go on; files already ingested stay.
        Unreachable: the service does not answer.
    """
    service.request("GET", "knowledge-bases", prefix)
    with progress_bar() as progress:
        bar = progress.add_task("ingest", total=len(files))
        for file in files:
            try:
                taken = service.add_document(prefix, file.source, _read(file.path))
            except OSError as error:
                report.failed.append({"file": str(file.path), "reason": f"cannot be read: {error.strerror}"})
            except ServiceError as error:
                if error.status not in _OF_THE_FILE:
                    raise
                report.failed.append({"file": str(file.path), "reason": error.detail.removeprefix("document: ")})
            else:
                setattr(report, taken["status"], getattr(report, taken["status"]) + 1)
            progress.advance(bar)
    if remove_missing:
        kept = {file.source for file in files}
        report.removed = remove_documents(service, prefix, lambda source: source not in kept)


def remove_documents(service: Anamnesis, prefix: str, goes: Callable[[str], bool]) -> int:
    """Remove the documents of a base whose names are to go; return how many."""
    gone = [each for each in service.items("knowledge-bases", prefix, "documents") if goes(each["source"])]
    for document in gone:
        service.request("DELETE", "knowledge-bases", prefix, "documents", document["id"])
    return len(gone)


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


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES + 1)  # one byte more shows that it is too large
