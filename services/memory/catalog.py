"""The catalog of a user's episodes: listed with filters, read one by one, and edited by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row, dict_row

from services.encryption.marks import Words
from services.errors import Conflict, NotFound
from services.identity.tenants import user_id_of
from services.memory.as_of import as_of
from services.memory.episodes.episode import (
    TEXT_OF_TURN,
    EpisodeType,
    Origin,
    Source,
    WrittenType,
    checked_content,
    sources_of,
)
from services.memory.operations import Operation, OperationLog, Trigger
from services.platform.connections import again_if_contended
from services.platform.postgres import Database
from services.platform.shared_reads import page_after

_ENTRY: LiteralString = f"""
SELECT e.id, x.name AS expert, s.name AS space, e.conversation_id, e.episode_type,
       coalesce(e.content, said.text, '') AS content, e.importance, e.origin, e.created_at, e.learned_at,
       e.source_message_ids,
       e.last_recalled_at, e.recall_count, e.retracted_at, e.pinned_at,
       coalesce(e.superseded_by, e.superseded_in, e.archived_by) AS superseded_by,
       f.created_at AS archived_at
FROM episodes e JOIN experts x ON x.id = e.expert_id LEFT JOIN spaces s ON s.id = e.space_id
LEFT JOIN upkeep_runs f ON f.id = e.archived_by AND f.tenant_id = e.tenant_id
{TEXT_OF_TURN}
"""  # noqa: S608 — our own text only

_PAGE: LiteralString = f"""{_ENTRY}
WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s
  AND (e.space_id IS NULL OR s.name = %(space)s)
  AND (%(expert)s::text IS NULL OR x.name = %(expert)s)
  AND (%(episode_type)s::text IS NULL OR e.episode_type = %(episode_type)s)
  AND (%(origin)s::text IS NULL OR e.origin = %(origin)s)
  AND (%(conversation_id)s::uuid IS NULL OR e.conversation_id = %(conversation_id)s)
  AND (%(since)s::timestamptz IS NULL OR e.created_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR e.created_at < %(until)s)
  AND (%(superseded)s OR num_nonnulls(e.superseded_by, e.superseded_in) = 0)
  AND (%(archived)s::boolean IS NULL OR (f.id IS NOT NULL) = %(archived)s)
  AND (%(pinned)s::boolean IS NULL OR (e.pinned_at IS NOT NULL) = %(pinned)s)
  AND (%(retracted)s OR e.retracted_at IS NULL)
  AND (%(contains)s::text IS NULL OR strpos(lower(coalesce(e.content, said.text, '')), lower(%(contains)s)) > 0)
  AND (%(after_at)s::timestamptz IS NULL OR (e.created_at, e.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY e.created_at DESC, e.id DESC LIMIT %(limit)s
"""

_ONE: LiteralString = f"""{_ENTRY}
WHERE e.id = %(id)s AND e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.retracted_at IS NULL
"""

_LOCK: LiteralString = """
SELECT e.expert_id, e.space_id, e.episode_type, e.content, e.importance,
       coalesce(e.superseded_by, e.superseded_in, e.archived_by) AS superseded_by
FROM episodes e
WHERE e.id = %(id)s AND e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.retracted_at IS NULL
FOR UPDATE
"""

_EDIT: LiteralString = """
UPDATE episodes SET content = %(content)s, importance = %(importance)s, episode_type = %(episode_type)s,
    made_by = made_by || jsonb_strip_nulls(jsonb_build_object('by', %(by)s::text)), indexed_at = NULL
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s
"""

_SCANNED_AT_ONCE = 500


@dataclass(frozen=True)
class EpisodeFilter:
    """Conditions on the episodes that are listed; None = any."""

    expert: str | None = None
    space: str | None = None
    """Name of a space whose episodes are listed in addition to those that all spaces share."""
    episode_type: EpisodeType | None = None
    origin: Origin | None = None
    conversation_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Not included."""
    contains: str | None = None
    superseded: bool = False
    retracted: bool = False
    archived: bool | None = None
    """True = only archived ones, False = only others; likewise for `pinned`."""
    pinned: bool | None = None
    as_of: datetime | None = None


@dataclass(frozen=True)
class CatalogEntry:
    """An episode in a list."""

    id: UUID
    expert: str
    space: str | None
    """Name of the space that it belongs to; None = all spaces share it."""
    conversation_id: UUID | None
    episode_type: EpisodeType
    content: str
    """Text of a memory; for a turn, what was said, with the speakers."""
    importance: float
    origin: Origin
    created_at: datetime
    """When it was said or written."""
    learned_at: datetime
    """When the service stored it; for an import this is later than `created_at`."""
    source_message_ids: list[UUID]
    last_recalled_at: datetime | None
    recall_count: int
    superseded_by: UUID | None
    """The memory or section of core memory that replaces it, or the run that archived or removed it."""
    retracted_at: datetime | None
    """When the user asked memory to forget it."""
    pinned_at: datetime | None
    """When it was pinned, so that maintenance leaves it alone."""
    archived_at: datetime | None
    """When maintenance took it out of prompts and recall."""


class EpisodeCatalog:
    """Lists and edits the episodes of users."""

    def __init__(self, database: Database, log: OperationLog) -> None:
        self._database = database
        self._log = log

    async def page(
        self, tenant_id: UUID, user: str, wanted: EpisodeFilter, *, after: tuple[datetime, UUID] | None, limit: int
    ) -> Sequence[CatalogEntry]:
        """Return the episodes of a user, given the caller's name for them, newest first."""
        user_id = await user_id_of(self._database, tenant_id, user)
        values = {**vars(wanted), "tenant_id": tenant_id, "user_id": user_id, **page_after(after, limit)}
        statement = as_of(_PAGE) if wanted.as_of else _PAGE
        if wanted.contains is None or self._database.vault is None:
            return await self._database.fetch(tenant_id, statement, values, class_row(CatalogEntry))
        return await self._scan(tenant_id, statement, values, wanted.contains, limit)

    async def _scan(
        self, tenant_id: UUID, statement: LiteralString, values: dict[str, Any], contains: str, limit: int
    ) -> list[CatalogEntry]:
        """Search page by page for a text, because the database cannot read encrypted contents."""
        found: list[CatalogEntry] = []
        values |= {"contains": None, "limit": _SCANNED_AT_ONCE}
        while page := await self._database.fetch(tenant_id, statement, values, class_row(CatalogEntry)):
            found += [entry for entry in page if contains.lower() in entry.content.lower()]
            if len(found) >= limit or len(page) < _SCANNED_AT_ONCE:
                break
            values |= {"after_at": page[-1].created_at, "after_id": page[-1].id}
        return found[:limit]

    async def get(self, tenant_id: UUID, user: str, episode_id: UUID) -> tuple[CatalogEntry, list[Source]]:
        """One episode, with the messages it comes from. Raises `NotFound` if the tenant has no such user, or
        the user no such episode."""
        values: dict[str, Any] = {"tenant_id": tenant_id, "id": episode_id}
        values["user_id"] = await user_id_of(self._database, tenant_id, user)
        found = await self._database.fetch(tenant_id, _ONE, values, class_row(CatalogEntry))
        if not found:
            raise NotFound(f"There is no episode {episode_id}.")
        sources = await sources_of(self._database, tenant_id, found[0].source_message_ids)
        return found[0], list(sources.values())

    @again_if_contended
    async def edit(
        self,
        tenant_id: UUID,
        user: str,
        episode_id: UUID,
        trigger: Trigger,
        *,
        content: str | None = None,
        importance: float | None = None,
        episode_type: WrittenType | None = None,
    ) -> None:
        """Change the given fields of a written memory; the next turn recalls the changed memory.

        Raises:
            InvalidInput: The content is empty or too long.
            NotFound: The tenant has no such user, or the user no such episode.
            Conflict: It is a turn, or it was superseded.
        """
        user_id = await user_id_of(self._database, tenant_id, user)
        owner = {"tenant_id": tenant_id, "user_id": user_id, "id": episode_id}
        async with self._database.tenant(tenant_id) as connection:
            async with connection.cursor(row_factory=dict_row) as cursor:
                old = await (await cursor.execute(_LOCK, owner)).fetchone()
            if old is None:
                raise NotFound(f"There is no episode {episode_id}.")
            _refuse(episode_id, old)
            new = {
                "content": old["content"]
                if content is None
                else checked_content(self._log.secrets.without(content)),
                "importance": old["importance"] if importance is None else importance,
                "episode_type": episode_type or old["episode_type"],
            }
            changed = [name for name, value in new.items() if value != old[name]]
            if not changed:
                return
            await connection.execute(_EDIT, {**owner, **new, "content": Words(new["content"]), "by": trigger.by})
            operation = Operation(
                "episode_update",
                field=str(episode_id),
                old_value={name: old[name] for name in changed},
                new_value={name: new[name] for name in changed},
            )
            whose = replace(trigger, expert_id=old["expert_id"], space_id=old["space_id"])
            await self._log.append(connection, tenant_id, user_id, operation, whose)


def _refuse(episode_id: UUID, old: dict[str, Any]) -> None:
    if old["episode_type"] == "turn":
        raise Conflict(
            f"The episode {episode_id} is a turn: what was said cannot be rewritten. Remove the episode so that "
            "it is not recalled, and write a memory that says what holds instead."
        )
    if old["superseded_by"] is not None:
        raise Conflict(
            f"The episode {episode_id} was superseded by {old['superseded_by']}; only what holds is edited."
        )
