"""Import: lines of conversations and memories become what they would be if they had been said here.

Lines are read as they arrive and stored a few hundred at a time, each batch in its own transaction. An import that
breaks off can be repeated: what is already stored is recognised and skipped.
"""

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from uuid import UUID

import structlog

from services.jobs.queue import JobQueue
from services.jobs.tasks import ARCHIVE, SUMMARISE
from services.platform.connections import Connection, again_if_contended
from services.platform.postgres import UNHURRIED_S, Database
from services.platform.settings import Settings
from services.summaries.schedule import ARCHIVE_SOON, fewest_messages
from services.text.secrets import Secrets
from services.transfer.batch import Batch, Numbered
from services.transfer.lines import BadLine, Line, parse, remembered_line
from services.transfer.message_store import ImportedMessages
from services.transfer.report import ImportReport
from services.visits.visit import group_visits, visit_schedule

LONGEST_LINE = 72 * 1024 * 1024
"""Maximum length of a line in bytes: a message may carry images of 70 MiB and some text."""

_BOM = b"\xef\xbb\xbf"


async def numbered_lines(
    chunks: AsyncIterable[bytes], *, longest: int = LONGEST_LINE
) -> AsyncIterator[tuple[int, bytes | None]]:
    """Yield each line with its number, from 1, without its end; None for a line longer than `longest` bytes. At
    most one line and one chunk are held in memory."""
    number, size = 1, 0
    pieces: list[bytes] = []
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            yield number, _line(number, pieces, piece, size, longest)
            number, size, pieces = number + 1, 0, []
        size += len(rest)
        if size > longest:
            pieces.clear()
        elif rest:
            pieces.append(rest)
    if size:
        yield number, _line(number, pieces, b"", size, longest)


def _line(number: int, pieces: list[bytes], last: bytes, size: int, longest: int) -> bytes | None:
    if size + len(last) > longest:
        return None
    line = b"".join((*pieces, last))
    return line.removeprefix(_BOM) if number == 1 else line


LINES_AT_ONCE = 250
_BYTES_AT_ONCE = 1024 * 1024

log = structlog.get_logger(__name__)


class Importer:
    """Imports lines for a tenant."""

    def __init__(self, settings: Settings, database: Database, jobs: JobQueue) -> None:
        self._settings = settings
        self._database = database
        self._jobs = jobs
        self._visits = visit_schedule(settings)
        self._secrets = Secrets(settings.memory_keep_secrets)

    async def run(
        self, tenant_id: UUID, chunks: AsyncIterable[bytes], *, only_user: str | None = None
    ) -> ImportReport:
        """Import JSON Lines; the report describes wrong lines, and the others are stored.

        Args:
            chunks: The bytes, cut anywhere.
            only_user: Refuse lines of other users.

        Raises:
            DatabaseUnavailable: The database does not answer; what was stored before stays.
        """
        report = ImportReport()
        batch: list[Numbered] = []
        size = 0
        async for number, raw in numbered_lines(chunks):
            if raw is not None and not raw.strip():
                continue
            try:
                batch.append((number, self._read(raw, only_user)))
            except BadLine as error:
                report.refuse(number, str(error))
                continue
            size += len(raw or b"")
            if len(batch) >= LINES_AT_ONCE or size >= _BYTES_AT_ONCE:
                report.add(await self._store(tenant_id, batch))
                batch, size = [], 0
        if batch:
            report.add(await self._store(tenant_id, batch))
        report.in_order()
        counts = {"imported": report.imported, "skipped": report.skipped, "refused": report.refused}
        log.info("lines imported", tenant_id=str(tenant_id), **counts)
        return report

    def _read(self, raw: bytes | None, only_user: str | None) -> Line:
        if raw is None:
            raise BadLine(f"is longer than {LONGEST_LINE} bytes")
        line = parse(raw)
        if only_user is not None and line.user_id != only_user:
            raise BadLine("user_id: there is no such user")
        return remembered_line(line, self._secrets)

    @again_if_contended
    async def _store(self, tenant_id: UUID, lines: Sequence[Numbered]) -> ImportReport:
        async with self._database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            batch = Batch(connection, tenant_id, lines, default_timezone=self._settings.default_timezone)
            report = await batch.store(episodes=self._settings.memory_episodes)
            if batch.touched:
                for conversation_id, (first, last) in batch.touched.items():
                    await group_visits(connection, tenant_id, self._visits, conversation_id, first, last)
                await self._defer(connection, tenant_id, list(batch.touched))
        return report

    async def _defer(self, connection: Connection, tenant_id: UUID, conversation_ids: Sequence[UUID]) -> None:
        """Defer the jobs that keep the conversations bounded, as turns do: no first turn waits for them."""
        enough = fewest_messages(self._settings)
        store = ImportedMessages(connection, tenant_id)
        for of, strategy in await store.behind(conversation_ids, enough=enough, soon=ARCHIVE_SOON):
            if strategy == "topics" or self._settings.memory_summaries:
                task = ARCHIVE if strategy == "topics" else SUMMARISE
                await self._jobs.defer(connection, task, tenant_id=tenant_id, one_of=of, conversation_id=of)
