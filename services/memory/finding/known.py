"""Statements known about a user: values of core memory and written memories, in one list.

What was said is in the archive, which is searched and is not listed here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, LiteralString
from uuid import UUID

import numpy as np
from psycopg.rows import dict_row, tuple_row

from services.identity.tenants import user_id_of
from services.memory.core.blocks import Owner
from services.memory.core.values import CoreValue, CoreValues
from services.memory.episodes.episode import Source, sources_of
from services.memory.finding.finder import MemoryFinder
from services.memory.model import Memory
from services.platform.postgres import Database
from services.text.tokenizer import informative_terms, terms

_TEXT_FIELDS = frozenset({"preferences", "facts", "wishes", "notes", "plans", "people", "habits", "dates"})
"""Lists of core memory whose items can be understood without the name of the field."""
_ALIKE = 0.3
"""Cosine from which on a value is relevant to a query that shares no word with it, for example in another
language."""

# A written memory that another one replaced is told with that one.
_WRITTEN: LiteralString = """
SELECT e.id::text, x.name AS expert, s.name AS space, e.content AS text, e.created_at AS since,
       e.pinned_at IS NOT NULL AS pinned, e.source_message_ids AS message_ids,
       (SELECT old.content FROM episodes old WHERE old.superseded_by = e.id AND old.tenant_id = e.tenant_id
          AND old.retracted_at IS NULL ORDER BY old.created_at DESC LIMIT 1) AS replaced
FROM remembered_episodes e JOIN experts x ON x.id = e.expert_id AND x.tenant_id = e.tenant_id
LEFT JOIN spaces s ON s.id = e.space_id AND s.tenant_id = e.tenant_id
WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.content IS NOT NULL
"""

_NAMES: LiteralString = """
SELECT x.id, x.name FROM experts x WHERE x.tenant_id = %(tenant_id)s
UNION ALL
SELECT s.id, s.name FROM spaces s WHERE s.tenant_id = %(tenant_id)s AND s.user_id = %(user_id)s
"""


@dataclass(frozen=True)
class Statement:
    """A statement about the user and their world."""

    id: str
    """The id that tools and the API use: `v` and twelve hexadecimal digits for a value, else a UUID."""
    kind: Literal["value", "written"]
    text: str
    field: str | None
    """Field of core memory that holds a value; None = a written memory."""
    expert: str
    space: str | None
    since: datetime
    pinned: bool
    replaced: str | None
    """Text that it replaced."""
    sources: list[Source]
    """The messages that it comes from."""


class KnownMemories:
    """Lists what is known of users."""

    def __init__(self, database: Database, values: CoreValues, finder: MemoryFinder) -> None:
        self._database = database
        self._values = values
        self._finder = finder

    async def list(
        self, tenant_id: UUID, user: str, *, after: tuple[datetime, str] | None = None, limit: int
    ) -> list[Statement]:
        """Return statements, newest first.

        Args:
            after: time and id of the last statement of the page before.
        """
        asked = {"tenant_id": tenant_id, "user_id": await user_id_of(self._database, tenant_id, user)}
        values = await self._values.read(tenant_id, asked["user_id"])
        written = await self._database.fetch(tenant_id, _WRITTEN, asked, dict_row)
        names: dict[UUID, str] = dict(await self._database.fetch(tenant_id, _NAMES, asked, tuple_row))
        found = [(_of_value(each, values, names), [each.message_id]) for each in values if each.holds]
        for row in written:
            ids = row.pop("message_ids")
            found.append((Statement(kind="written", field=None, sources=[], **row), ids))
        ordered = sorted(found, key=lambda each: (each[0].since, each[0].id), reverse=True)
        page = [each for each in ordered if after is None or (each[0].since, each[0].id) < after][:limit]
        wanted = [one for _, ids in page for one in ids if one is not None]
        sources = await sources_of(self._database, tenant_id, wanted)
        for statement, ids in page:
            statement.sources.extend(sources[each] for each in ids if each in sources)
        return [statement for statement, _ in page]

    async def bearing_on(self, owner: Owner, query: str) -> Sequence[Statement]:
        """Return the values of an owner that share words with a query, most words first, or are near it in
        meaning."""
        read = await self._values.read(owner.tenant_id, owner.user_id)
        known = [
            replace(_of_value(each, read, {}), text=_sentence(each.field, each.text))
            for each in read
            if each.holds and each.expert_id == owner.expert_id and each.space_id in (None, owner.space_id)
        ]
        asked = informative_terms(query)
        score = np.array([len(asked & set(terms(each.text))) for each in known], dtype=np.float64)
        places = [Memory("written", each.id, each.text) for each in known]
        if known and (alike := await self._finder.likeness([query], places, {})) is not None:
            score += np.where(alike >= _ALIKE, alike, 0)
        return [known[int(at)] for at in np.argsort(-score, kind="stable") if score[at] > 0]


def _sentence(name: str, item: str) -> str:
    return item if name in _TEXT_FIELDS else f"{name.replace('_', ' ')}: {item}"


def _of_value(value: CoreValue, values: Sequence[CoreValue], names: dict[UUID, str]) -> Statement:
    return Statement(
        id=f"v{value.digest[:12]}",
        kind="value",
        text=value.text,
        field=value.field,
        expert=names.get(value.expert_id, ""),
        space=names.get(value.space_id) if value.space_id else None,
        since=value.since,
        pinned=value.is_pinned,
        replaced=_replaced_by(value, values),
        sources=[],
    )


def _replaced_by(value: CoreValue, values: Sequence[CoreValue]) -> str | None:
    """Return the text that left the same field when a value came."""
    went = [
        each.text
        for each in values
        if (each.block_id, each.field) == (value.block_id, value.field) and each.until == value.since
    ]
    return went[0] if went else None
