"""Knowledge bases: create, change, list and remove them."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Annotated
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, with_config
from typing_extensions import TypedDict
from uuid_utils.compat import uuid7

from services.context.sources.knowledge import HANDLERS
from services.conversations.values import (
    MAX_PROMPT_CHARACTERS,
    MAX_SYSTEM_PROMPT_TOKENS,
    Id,
    check_system_prompt,
    not_blank,
)
from services.errors import Conflict, InvalidInput, NotFound
from services.jobs.queue import JobQueue
from services.platform.connections import again_if_contended
from services.platform.postgres import Database, Row
from services.search.vector_index import FORGET_PASSAGES
from services.validation import no_nul

PREFIX_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,62}$"

Prefix = Annotated[str, StringConstraints(pattern=PREFIX_PATTERN)]
_Phrase = Annotated[
    str, StringConstraints(min_length=1, max_length=100), AfterValidator(no_nul), AfterValidator(not_blank)
]
Description = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2000),
    AfterValidator(no_nul),
    AfterValidator(not_blank),
    Field(description="What its documents are about, in a sentence or two."),
]
Keywords = Annotated[
    list[_Phrase], Field(max_length=200, description="Words and phrases specific to its subject.")
]
SystemPrompt = Annotated[
    str,
    StringConstraints(max_length=MAX_PROMPT_CHARACTERS),
    AfterValidator(no_nul),
    Field(
        description="Instructions for answers from this base, in addition to the expert's system prompt; "
        f"at most {MAX_SYSTEM_PROMPT_TOKENS} tokens."
    ),
]
Handler = Annotated[
    Id | None, Field(description="Name of the strategy that answers from it; null = the default one.")
]


@dataclass(frozen=True)
class NewBase:
    """A knowledge base to create."""

    __pydantic_config__ = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"prefix": "handbook", "description": "The handbook of our staff."}]},
    )

    prefix: Annotated[Prefix, Field(description="Its name, in messages as `kb_prefix`; it cannot be changed.")]
    description: Description
    keywords: Keywords = field(default_factory=list)
    system_prompt: SystemPrompt = ""
    handler: Handler = None


@with_config(ConfigDict(extra="forbid"))
class BaseChange(TypedDict, total=False):
    """A change of a knowledge base; fields that are not given stay."""

    description: Description
    keywords: Keywords
    system_prompt: SystemPrompt
    handler: Handler


@dataclass(frozen=True)
class Base:
    """A knowledge base of a tenant; callers know it by its prefix."""

    id: Annotated[UUID, Field(exclude=True)]
    prefix: str
    description: str
    keywords: list[str]
    system_prompt: str
    handler: str | None
    created_at: datetime
    updated_at: datetime
    """Time of its last change; documents do not count."""
    documents: int
    chunks: int
    """Pieces that its documents were cut into."""
    waiting: int
    """Number of chunks that wait to be indexed; until then they are found by their words."""


_BASES = """
SELECT b.id, b.prefix, b.description, b.keywords, b.system_prompt, b.handler, b.created_at,
       b.updated_at, d.documents, d.chunks, w.waiting
FROM knowledge_bases b
CROSS JOIN LATERAL (
    SELECT count(*) AS documents, coalesce(sum(chunk_count), 0)::bigint AS chunks
    FROM kb_documents WHERE tenant_id = %(tenant_id)s AND base_id = b.id
) AS d
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting FROM kb_chunks
    WHERE tenant_id = %(tenant_id)s AND base_id = b.id AND indexed_at IS NULL
) AS w
WHERE b.tenant_id = %(tenant_id)s AND b.user_id IS NULL
  AND (%(prefix)s::text IS NULL OR b.prefix = %(prefix)s)
  AND (%(after)s::text IS NULL OR b.prefix > %(after)s)
ORDER BY b.prefix LIMIT %(limit)s
"""

_CREATE = """
INSERT INTO knowledge_bases (id, tenant_id, prefix, description, keywords, system_prompt, handler)
VALUES (%(id)s, %(tenant_id)s, %(prefix)s, %(description)s, %(keywords)s, %(system_prompt)s, %(handler)s)
ON CONFLICT (tenant_id, prefix) DO NOTHING
RETURNING 1
"""

# Only the handler may be set to null.
_UPDATE = """
UPDATE knowledge_bases SET
    description = coalesce(%(description)s, description),
    keywords = coalesce(%(keywords)s::jsonb, keywords),
    system_prompt = coalesce(%(system_prompt)s, system_prompt),
    handler = CASE WHEN %(sets_handler)s THEN %(handler)s ELSE handler END,
    updated_at = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND prefix = %(prefix)s AND user_id IS NULL
RETURNING 1
"""

_DELETE = """
DELETE FROM knowledge_bases WHERE tenant_id = %(tenant_id)s AND prefix = %(prefix)s AND user_id IS NULL
RETURNING id
"""

_PREFIX = re.compile(PREFIX_PATTERN)


class KnowledgeBases:
    """Makes, changes and removes knowledge bases."""

    def __init__(self, database: Database, jobs: JobQueue) -> None:
        self._database = database
        self._jobs = jobs

    async def page(
        self, tenant_id: UUID, *, after: str | None, limit: int, prefix: str | None = None
    ) -> Sequence[Base]:
        """Return the tenant's bases by prefix, after the prefix `after`; or only the one of a prefix."""
        values = {"tenant_id": tenant_id, "prefix": prefix, "after": after, "limit": limit}
        return await self._database.fetch(tenant_id, _BASES, values, class_row(Base))

    async def get(self, tenant_id: UUID, prefix: str) -> Base:
        """Return one base. Raises `NotFound` if the tenant has none of this prefix."""
        return only(prefix, await self.page(tenant_id, after=None, limit=1, prefix=prefix))

    async def create(self, tenant_id: UUID, new: NewBase) -> Base:
        """Create a base. Raises `InvalidInput` if the prefix is none, the system prompt is too long, or there
        is no such handler, and `Conflict` if the tenant has one of this prefix."""
        if not _PREFIX.fullmatch(new.prefix):
            raise InvalidInput("prefix", "is not 1 to 63 of a-z, 0-9, _ and -, the first a letter or a digit")
        check_system_prompt(new.system_prompt)
        _check_handler(new.handler)
        values = {**asdict(new), "keywords": Jsonb(new.keywords), "id": uuid7(), "tenant_id": tenant_id}
        if not await self._database.fetch(tenant_id, _CREATE, values, tuple_row):
            raise Conflict(f"There is a knowledge base {new.prefix} already.")
        return await self.get(tenant_id, new.prefix)

    async def update(self, tenant_id: UUID, prefix: str, change: BaseChange) -> Base:
        """Change a base; later messages see the change. Raises `InvalidInput` if the system prompt is too long,
        or there is no such handler, and `NotFound` if the tenant has none of this prefix."""
        check_system_prompt(change.get("system_prompt", ""))
        _check_handler(change.get("handler"))
        values = {
            "tenant_id": tenant_id,
            "prefix": prefix,
            "description": change.get("description"),
            "keywords": Jsonb(change["keywords"]) if "keywords" in change else None,
            "system_prompt": change.get("system_prompt"),
            "handler": change.get("handler"),
            "sets_handler": "handler" in change,
        }
        only(prefix, await self._database.fetch(tenant_id, _UPDATE, values, tuple_row))
        return await self.get(tenant_id, prefix)

    @again_if_contended
    async def delete(self, tenant_id: UUID, prefix: str) -> None:
        """Remove a base with its documents; a job removes its chunks from the index. Raises `NotFound` if the
        tenant has none of this prefix."""
        async with self._database.tenant(tenant_id) as connection:
            values = {"tenant_id": tenant_id, "prefix": prefix}
            found = only(prefix, await (await connection.execute(_DELETE, values)).fetchall())
            await self._jobs.defer(
                connection, FORGET_PASSAGES, tenant_id=tenant_id, base_id=found[0], document_ids=[]
            )


def only(name: object, found: Sequence[Row]) -> Row:
    """Return the only base in a result. Raises `NotFound` if none has this prefix or id."""
    if not found:
        raise NotFound(f"There is no knowledge base {str(name)!r}.")
    return found[0]


def _check_handler(name: str | None) -> None:
    if name is not None and name not in HANDLERS:
        raise InvalidInput("handler", f"there is none named {name!r}; there is {', '.join(sorted(HANDLERS))}")
