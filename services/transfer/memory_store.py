"""Imported core memory and written episodes, within the caller's transaction, which holds their users."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, LiteralString, TypeVar
from uuid import UUID

from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.encryption.marks import Words, WordsDigest, WordsJson
from services.memory.core_values import digest_of_value
from services.store import sql as store_sql
from services.store.model import content_of, joined
from services.transfer.lines import CoreMemoryLine, EpisodeLine, ExclusionLine, Line, SourceLine, StoreItemLine
from services.transfer.messages import digest_of, import_key, stored_key
from services.transfer.owners import BatchStatements

# The history of a section begins with the import. The new generation invalidates caches.
_ADD_SECTIONS: LiteralString = """
WITH block AS (
    INSERT INTO core_memory_blocks (id, tenant_id, user_id, expert_id, space_id, section, content, version,
        updated_at)
    SELECT g.id, %(tenant_id)s, g.user_id, g.expert_id, g.space_id, g.section, g.content, 1, coalesce(g.at, now())
    FROM unnest(%(ids)s::uuid[], %(user_ids)s::uuid[], %(expert_ids)s::uuid[], %(space_ids)s::uuid[],
                %(sections)s::text[], %(contents)s::jsonb[], %(ats)s::timestamptz[])
        AS g (id, user_id, expert_id, space_id, section, content, at)
    ORDER BY g.id
    ON CONFLICT (user_id, expert_id, section, space_id, tenant_id) DO NOTHING
    RETURNING id, content, user_id, expert_id
), generation AS (
    INSERT INTO core_memory_generations (user_id, expert_id, tenant_id, generation)
    SELECT DISTINCT user_id, expert_id, %(tenant_id)s::uuid, 1 FROM block
    ON CONFLICT (user_id, expert_id, tenant_id) DO NOTHING
), change AS (
    INSERT INTO core_memory_history (block_id, version, tenant_id, new, actor)
    SELECT id, 1, %(tenant_id)s, content, 'import' FROM block
)
SELECT id FROM block
"""

_ADD_PINS: LiteralString = """
INSERT INTO core_memory_pins (block_id, digest, tenant_id)
SELECT g.block_id, g.digest, %(tenant_id)s
FROM unnest(%(block_ids)s::uuid[], %(digests)s::bytea[]) AS g (block_id, digest)
ON CONFLICT DO NOTHING
"""

# The caller compares contents: in the database they may be encrypted.
_KNOWN_EPISODES: LiteralString = """
SELECT g.number, stored.content
FROM unnest(%(numbers)s::bigint[], %(user_ids)s::uuid[], %(expert_ids)s::uuid[], %(conversation_ids)s::uuid[],
            %(types)s::text[], %(ats)s::timestamptz[], %(space_ids)s::uuid[])
    AS g (number, user_id, expert_id, conversation_id, episode_type, at, space_id)
CROSS JOIN LATERAL (
    SELECT e.content FROM episodes e
    WHERE e.user_id = g.user_id AND e.created_at = g.at AND e.expert_id = g.expert_id
      AND e.conversation_id IS NOT DISTINCT FROM g.conversation_id
      AND e.space_id IS NOT DISTINCT FROM g.space_id AND e.episode_type = g.episode_type
      AND e.content IS NOT NULL
) AS stored
"""

# As with messages: those of a turn are known by time, role and content.
_SOURCES: LiteralString = """
SELECT g.number, g.place, imported.id, said.id, said.content
FROM unnest(%(numbers)s::bigint[], %(user_ids)s::uuid[], %(session_keys)s::text[], %(keys)s::text[],
            %(ats)s::timestamptz[], %(roles)s::text[])
    WITH ORDINALITY AS g (number, user_id, session_key, key, at, role, place)
JOIN conversations c
    ON c.tenant_id = %(tenant_id)s AND c.user_id = g.user_id AND c.session_key = g.session_key
LEFT JOIN LATERAL (
    SELECT m.id FROM messages m WHERE m.conversation_id = c.id AND m.import_key = g.key LIMIT 1
) AS imported ON true
LEFT JOIN LATERAL (
    SELECT m.id, m.content FROM messages m
    WHERE m.conversation_id = c.id AND m.created_at = g.at AND m.role = g.role AND m.import_key IS NULL
) AS said ON true
WHERE imported.id IS NOT NULL OR said.id IS NOT NULL
ORDER BY g.place
"""

_ADD_EPISODES: LiteralString = """
INSERT INTO episodes (id, tenant_id, user_id, expert_id, space_id, conversation_id, episode_type, content,
    importance, origin, source_message_ids, created_at, made_by, pinned_at, archived_by)
SELECT g.id, %(tenant_id)s, g.user_id, g.expert_id, g.space_id, g.conversation_id, g.episode_type, g.content,
    g.importance, g.origin, g.sources::uuid[], g.at, '{"actor": "import"}',
    CASE WHEN g.pinned THEN now() END, g.run_id
FROM unnest(%(ids)s::uuid[], %(user_ids)s::uuid[], %(expert_ids)s::uuid[], %(conversation_ids)s::uuid[],
            %(types)s::text[], %(contents)s::text[], %(importances)s::real[], %(origins)s::text[],
            %(sources)s::text[], %(ats)s::timestamptz[], %(space_ids)s::uuid[], %(pinned)s::boolean[],
            %(run_ids)s::uuid[])
    AS g (id, user_id, expert_id, conversation_id, episode_type, content, importance, origin, sources, at,
          space_id, pinned, run_id)
"""

# An archived memory hangs on a run of its user's, by which it is brought back.
_ADD_FADING: LiteralString = """
WITH given AS (
    SELECT * FROM unnest(%(run_ids)s::uuid[], %(user_ids)s::uuid[], %(ids)s::uuid[]) AS g (run_id, user_id, id)
    WHERE run_id IS NOT NULL
), runs AS (
    INSERT INTO upkeep_runs (id, tenant_id, user_id, reason)
    SELECT DISTINCT run_id, %(tenant_id)s::uuid, user_id, 'import' FROM given
)
INSERT INTO upkeep_changes (run_id, episode_id, tenant_id, user_id)
SELECT run_id, id, %(tenant_id)s, user_id FROM given
"""


_WRITTEN: LiteralString = """
SELECT g.number, e.id, e.content
FROM unnest(%(numbers)s::bigint[], %(user_ids)s::uuid[], %(ats)s::timestamptz[]) AS g (number, user_id, at)
JOIN episodes e ON e.user_id = g.user_id AND e.created_at = g.at AND e.episode_type <> 'turn'
"""

_ADD_EXCLUSIONS: LiteralString = """
WITH given AS (
    SELECT g.*, c.id AS conversation_id
    FROM unnest(%(numbers)s::bigint[], %(ids)s::uuid[], %(user_ids)s::uuid[], %(session_keys)s::text[],
                %(episode_ids)s::uuid[], %(message_ids)s::uuid[])
        AS g (number, id, user_id, session_key, episode_id, message_id)
    JOIN conversations c
        ON c.tenant_id = %(tenant_id)s AND c.user_id = g.user_id AND c.session_key = g.session_key
), added AS (
    INSERT INTO recall_exclusions (id, tenant_id, conversation_id, episode_id, message_id)
    SELECT id, %(tenant_id)s, conversation_id, episode_id, message_id FROM given
    ON CONFLICT (conversation_id, episode_id, message_id, tenant_id) DO NOTHING
    RETURNING id
)
SELECT number, id IN (SELECT id FROM added) FROM given
"""


L = TypeVar("L", bound=Line)


@dataclass(frozen=True)
class Owned(Generic[L]):
    """A line with whose it is."""

    number: int
    """From 1."""
    line: L
    user_id: UUID
    expert_id: UUID
    space_id: UUID | None
    conversation_id: UUID | None


class ImportedMemory(BatchStatements):
    """Stores core memory and episodes of one tenant."""

    async def add_sections(self, sections: Sequence[Owned[CoreMemoryLine]]) -> int:
        """Store the sections that are new, with their pins; return how many."""
        ids = [uuid7() for _ in sections]
        values = {
            "ids": ids,
            "user_ids": [each.user_id for each in sections],
            "expert_ids": [each.expert_id for each in sections],
            "space_ids": [each.space_id for each in sections],
            "sections": [each.line.section for each in sections],
            "contents": [WordsJson(each.line.content) for each in sections],
            "ats": [each.line.updated_at for each in sections],
        }
        added = {row[0] for row in await self._rows(_ADD_SECTIONS, values)}
        pins = [
            (each.user_id, block_id, digest_of_value(block_id, pin.field, pin.text))
            for block_id, each in zip(ids, sections, strict=True)
            if block_id in added
            for pin in each.line.pinned
        ]
        if pins:
            user_ids, block_ids, digests = zip(*pins, strict=True)
            pinned = {"user_ids": list(user_ids), "block_ids": list(block_ids)}
            await self._run(_ADD_PINS, {**pinned, "digests": [WordsDigest(each) for each in digests]})
        return len(added)

    async def add_episodes(self, episodes: Sequence[Owned[EpisodeLine]]) -> int:
        """Store the episodes that are new; return how many.

        A source that is not stored is left out.
        """
        contents = {each.number: each.line.content for each in episodes}
        stored = await self._rows(_KNOWN_EPISODES, _values(episodes))
        known = {number for number, content in stored if content == contents[number]}
        first_of = {_identity(each): each for each in reversed(episodes)}
        new = [each for each in episodes if each.number not in known and first_of[_identity(each)] is each]
        sources = await self._sources(
            [(each.number, each.user_id, source) for each in new for source in each.line.sources]
        )
        runs = {each.user_id: uuid7() for each in new if each.line.archived}
        values = {
            **_values(new),
            "pinned": [each.line.pinned for each in new],
            "run_ids": [runs[each.user_id] if each.line.archived else None for each in new],
            "contents": [Words(each.line.content) for each in new],
            "ids": [uuid7() for _ in new],
            "importances": [each.line.importance for each in new],
            "origins": [each.line.origin for each in new],
            "sources": ["{" + ",".join(map(str, sources.get(each.number, []))) + "}" for each in new],
        }
        if runs:
            await self._run(_ADD_FADING, values)
        await self._run(_ADD_EPISODES, values)
        return len(new)

    async def add_items(self, items: Sequence[Owned[StoreItemLine]]) -> int:
        """Store the items that are new; return how many."""
        values = {
            "ids": [uuid7() for _ in items],
            "user_ids": [each.user_id for each in items],
            "space_ids": [each.space_id for each in items],
            "namespaces": [joined(each.line.namespace) for each in items],
            "keys": [each.line.key for each in items],
            "contents": [content_of(each.line.value) for each in items],
            "paths": [Jsonb(each.line.index) for each in items],
            "ttls": [each.line.ttl for each in items],
            "created": [each.line.created_at for each in items],
            "updated": [each.line.updated_at for each in items],
        }
        return len(await self._rows(store_sql.IMPORT, values))

    async def add_exclusions(self, exclusions: Sequence[Owned[ExclusionLine]]) -> dict[int, bool]:
        """Store exclusions of conversations.

        Returns:
            By the number of its line, whether it was not stored before; without the lines whose conversation,
            message or memory is not stored.
        """
        messages = await self._sources(
            [(each.number, each.user_id, each.line.message) for each in exclusions if each.line.message]
        )
        named = [(each, each.line.memory) for each in exclusions if each.line.memory]
        values: dict[str, Any] = {
            "numbers": [each.number for each, _ in named],
            "user_ids": [each.user_id for each, _ in named],
            "ats": [memory.created_at for _, memory in named],
        }
        digests = {each.number: bytes.fromhex(memory.sha256) for each, memory in named}
        memories: dict[int, UUID] = {
            number: episode_id
            for number, episode_id, content in (await self._rows(_WRITTEN, values) if named else [])
            if digest_of(content) == digests[number]
        }
        found = [each for each in exclusions if each.number in messages or each.number in memories]
        values = {
            "numbers": [each.number for each in found],
            "ids": [uuid7() for _ in found],
            "user_ids": [each.user_id for each in found],
            "session_keys": [each.line.session_id for each in found],
            "episode_ids": [memories.get(each.number) for each in found],
            "message_ids": [next(iter(messages.get(each.number, ())), None) for each in found],
        }
        return dict(await self._rows(_ADD_EXCLUSIONS, values))

    async def _sources(self, named: Sequence[tuple[int, UUID, SourceLine]]) -> dict[int, list[UUID]]:
        """Ids of the stored messages, by the numbers of the lines that name them."""
        values = {
            "numbers": [number for number, _, _ in named],
            "user_ids": [user_id for _, user_id, _ in named],
            "session_keys": [source.session_id for _, _, source in named],
            "keys": [stored_key(_key_of(source)) for _, _, source in named],
            "ats": [source.created_at for _, _, source in named],
            "roles": [source.role for _, _, source in named],
        }
        found: dict[tuple[int, int], UUID] = {}
        for number, place, imported, said, content in await self._rows(_SOURCES, values):
            is_said = content is not None and digest_of(content).hex() == named[place - 1][2].sha256
            if imported is not None or is_said:
                found.setdefault((number, place), imported or said)
        of_line: dict[int, list[UUID]] = {}
        for (number, _), message_id in found.items():
            of_line.setdefault(number, []).append(message_id)
        return of_line


def _values(episodes: Sequence[Owned[EpisodeLine]]) -> dict[str, Any]:
    return {
        "numbers": [each.number for each in episodes],
        "user_ids": [each.user_id for each in episodes],
        "expert_ids": [each.expert_id for each in episodes],
        "space_ids": [each.space_id for each in episodes],
        "conversation_ids": [each.conversation_id for each in episodes],
        "types": [each.line.episode_type for each in episodes],
        "ats": [each.line.created_at for each in episodes],
    }


def _identity(episode: Owned[EpisodeLine]) -> tuple[Any, ...]:
    line = episode.line
    owner = episode.user_id, episode.expert_id, episode.space_id, episode.conversation_id
    return *owner, line.episode_type, line.content, line.created_at


def _key_of(source: SourceLine) -> str:
    return import_key(
        source.session_id,
        external_id=source.external_id,
        at=source.created_at,
        role=source.role,
        sha256=source.sha256,
    )
