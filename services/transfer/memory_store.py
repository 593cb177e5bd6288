"""Stores imported core memory and written episodes in the caller's transaction, which locks their users."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, LiteralString, TypeVar
from uuid import UUID

from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.encryption.marks import Words, WordsDigest, WordsJson
from services.memory.core.values import digest_of_value
from services.store import sql as store_sql
from services.store.model import content_of, joined
from services.transfer.lines import (
    CoreMemoryLine,
    EpisodeLine,
    ExclusionLine,
    Line,
    PromiseLine,
    SourceLine,
    StoreItemLine,
)
from services.transfer.messages import digest_of, import_key, stored_key
from services.transfer.owners import BatchStatements, Row, given, insert

_BLOCKS = insert(
    "core_memory_blocks",
    "ORDER BY id ON CONFLICT (user_id, expert_id, section, space_id, tenant_id) DO NOTHING "
    "RETURNING id, content, user_id, expert_id",
    id="uuid", user_id="uuid", expert_id="uuid", space_id="uuid", section="text", content="jsonb",
    version="integer", updated_at="timestamptz",
)  # fmt: skip
# The history of a section begins with the import. The new generation invalidates caches.
_ADD_SECTIONS: LiteralString = f"""
WITH block AS ({_BLOCKS}), generation AS (
    INSERT INTO core_memory_generations (user_id, expert_id, tenant_id, generation)
    SELECT DISTINCT user_id, expert_id, %(tenant_id)s::uuid, 1 FROM block
    ON CONFLICT (user_id, expert_id, tenant_id) DO NOTHING
), change AS (
    INSERT INTO core_memory_history (block_id, version, tenant_id, new, actor)
    SELECT id, 1, %(tenant_id)s, content, 'import' FROM block
)
SELECT id FROM block
"""  # noqa: S608 — our own text only

_ADD_PINS = insert("core_memory_pins", "ON CONFLICT DO NOTHING", block_id="uuid", digest="bytea")

# The caller compares contents, because the database may hold them encrypted.
_KNOWN_EPISODES: LiteralString = f"""
SELECT g.number, stored.content
FROM {
    given(
        number="bigint",
        user_id="uuid",
        expert_id="uuid",
        conversation_id="uuid",
        episode_type="text",
        at="timestamptz",
        space_id="uuid",
    )
}
CROSS JOIN LATERAL (
    SELECT e.content FROM episodes e
    WHERE e.user_id = g.user_id AND e.created_at = g.at AND e.expert_id = g.expert_id
      AND e.conversation_id IS NOT DISTINCT FROM g.conversation_id
      AND e.space_id IS NOT DISTINCT FROM g.space_id AND e.episode_type = g.episode_type
      AND e.content IS NOT NULL
) AS stored
"""  # noqa: S608 — our own text only

# As with messages, those of a turn are recognised by time, role and content.
_SOURCES: LiteralString = f"""
SELECT g.number, g.place, imported.id, said.id, said.content
FROM {given(number="bigint", user_id="uuid", session_key="text", key="text", at="timestamptz", role="text")}
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
"""  # noqa: S608 — our own text only

_ADD_EPISODES: LiteralString = f"""
INSERT INTO episodes (id, tenant_id, user_id, expert_id, space_id, conversation_id, episode_type, content,
    importance, origin, source_message_ids, created_at, made_by, pinned_at, archived_by)
SELECT g.id, %(tenant_id)s, g.user_id, g.expert_id, g.space_id, g.conversation_id, g.episode_type, g.content,
    g.importance, g.origin, g.sources::uuid[], g.at, '{{"actor": "import"}}',
    CASE WHEN g.pinned THEN now() END, g.run_id
FROM {
    given(
        id="uuid",
        user_id="uuid",
        expert_id="uuid",
        conversation_id="uuid",
        episode_type="text",
        content="text",
        importance="real",
        origin="text",
        sources="text",
        at="timestamptz",
        space_id="uuid",
        pinned="boolean",
        run_id="uuid",
    )
}
"""  # noqa: S608 — our own text only

# An archived memory refers to an upkeep run of its user, which can bring it back.
_ADD_RUNS = insert("upkeep_runs", id="uuid", user_id="uuid", reason="text")
_ADD_FADING = insert("upkeep_changes", run_id="uuid", user_id="uuid", episode_id="uuid")

_WRITTEN: LiteralString = f"""
SELECT g.number, e.id, e.content FROM {given(number="bigint", user_id="uuid", at="timestamptz")}
JOIN episodes e ON e.user_id = g.user_id AND e.created_at = g.at AND e.episode_type <> 'turn'
"""  # noqa: S608 — our own text only

# A memory that was made at the same moment is the same memory.
_ADD_PROMISES: LiteralString = f"""
INSERT INTO promises (id, tenant_id, user_id, expert_id, space_id, conversation_id, source_message_id, text, said,
    quote, rule, timezone, asked_by, event, state, due_at, created_at, settled_at)
SELECT DISTINCT ON (g.user_id, g.at) g.id, %(tenant_id)s::uuid, g.user_id, g.expert_id, g.space_id,
    g.conversation_id, g.message_id, g.text, g.said, g.quote, g.rule, g.timezone, g.asked_by, g.event, g.state,
    g.due_at, g.at, g.settled_at
FROM {
    given(
        id="uuid",
        user_id="uuid",
        expert_id="uuid",
        space_id="uuid",
        conversation_id="uuid",
        message_id="uuid",
        text="text",
        said="text",
        quote="text",
        rule="text",
        timezone="text",
        asked_by="text",
        event="text",
        state="text",
        due_at="timestamptz",
        at="timestamptz",
        settled_at="timestamptz",
    )
}
WHERE NOT EXISTS (SELECT FROM promises p WHERE p.user_id = g.user_id AND p.created_at = g.at)
ORDER BY g.user_id, g.at, g.place RETURNING id
"""  # noqa: S608 — our own text only

_ADD_EXCLUSIONS: LiteralString = f"""
WITH given AS (
    SELECT g.*, c.id AS conversation_id
    FROM {
    given(number="bigint", id="uuid", user_id="uuid", session_key="text", episode_id="uuid", message_id="uuid")
}
    JOIN conversations c
        ON c.tenant_id = %(tenant_id)s AND c.user_id = g.user_id AND c.session_key = g.session_key
), added AS (
    INSERT INTO recall_exclusions (id, tenant_id, conversation_id, episode_id, message_id)
    SELECT id, %(tenant_id)s, conversation_id, episode_id, message_id FROM given
    ON CONFLICT (conversation_id, episode_id, message_id, tenant_id) DO NOTHING
    RETURNING id
)
SELECT number, id IN (SELECT id FROM added) FROM given
"""  # noqa: S608 — our own text only


L = TypeVar("L", bound=Line)


Owned = tuple[L, Row]
"""A line and its owner: `number`, `user_id`, `expert_id`, `space_id` and `conversation_id`."""


class ImportedMemory(BatchStatements):
    """Stores core memory and episodes of one tenant."""

    async def add_sections(self, sections: Sequence[Owned[CoreMemoryLine]]) -> int:
        """Store the new sections with their pins; return how many are new."""
        now = datetime.now(UTC)
        rows = [
            {
                **vars(line),
                **owner,
                "id": uuid7(),
                "content": WordsJson(line.content),
                "version": 1,
                "updated_at": line.updated_at or now,
            }
            for line, owner in sections
        ]
        added = {row[0] for row in await self._run(_ADD_SECTIONS, rows)}
        pins = [
            {
                "user_id": row["user_id"],
                "block_id": row["id"],
                "digest": WordsDigest(digest_of_value(row["id"], pin.field, pin.text)),
            }
            for row, (line, _) in zip(rows, sections, strict=True)
            if row["id"] in added
            for pin in line.pinned
        ]
        await self._run(_ADD_PINS, pins)
        return len(added)

    async def add_episodes(self, episodes: Sequence[Owned[EpisodeLine]]) -> int:
        """Store the new episodes; return how many are new. Sources that are not stored are left out."""
        rows = [{**owner, "episode_type": line.episode_type, "at": line.created_at} for line, owner in episodes]
        contents = {owner["number"]: line.content for line, owner in episodes}
        stored = await self._run(_KNOWN_EPISODES, rows)
        known = {number for number, content in stored if content == contents[number]}
        first_of = {_identity(each): each[1]["number"] for each in reversed(episodes)}
        new = [
            (each[0], row)
            for each, row in zip(episodes, rows, strict=True)
            if row["number"] not in known and first_of[_identity(each)] == row["number"]
        ]
        sources = await self._sources(
            [(row["number"], row["user_id"], source) for line, row in new for source in line.sources]
        )
        runs = {row["user_id"]: uuid7() for line, row in new if line.archived}
        added = [
            {
                **vars(line),
                **row,
                "id": uuid7(),
                "content": Words(line.content),
                "sources": "{" + ",".join(map(str, sources.get(row["number"], []))) + "}",
                "run_id": runs[row["user_id"]] if line.archived else None,
            }
            for line, row in new
        ]
        faded = [{**row, "episode_id": row["id"]} for row in added if row["run_id"]]
        made = [{"id": run_id, "user_id": user_id, "reason": "import"} for user_id, run_id in runs.items()]
        await self._run(_ADD_RUNS, made)
        await self._run(_ADD_FADING, faded)
        await self._run(_ADD_EPISODES, added)
        return len(new)

    async def add_items(self, items: Sequence[Owned[StoreItemLine]]) -> int:
        """Store the new items; return how many are new."""
        rows = [
            {
                **vars(line),
                **owner,
                "id": uuid7(),
                "namespace": joined(line.namespace),
                "content": content_of(line.value),
                "path": Jsonb(line.index),
            }
            for line, owner in items
        ]
        return len(await self._run(store_sql.IMPORT, rows))

    async def add_promises(self, promises: Sequence[Owned[PromiseLine]]) -> int:
        """Store the new promises, without messages that are not stored; return how many are new."""
        sources = await self._sources(
            [(owner["number"], owner["user_id"], line.source) for line, owner in promises if line.source]
        )
        rows = [
            {
                **vars(line),
                **owner,
                **{name: Words(getattr(line, name)) for name in ("text", "said", "quote", "rule")},
                "id": uuid7(),
                "message_id": next(iter(sources.get(owner["number"], ())), None),
                "at": line.created_at,
                "event": "changed" if line.event and line.state == "open" else line.event,
            }
            for line, owner in promises
        ]
        return len(await self._run(_ADD_PROMISES, rows))

    async def add_exclusions(self, exclusions: Sequence[Owned[ExclusionLine]]) -> dict[int, bool]:
        """Store exclusions of conversations.

        Returns:
            For each line number, whether the exclusion is new; without lines whose conversation, message or memory
            is not stored.
        """
        messages = await self._sources(
            [(owner["number"], owner["user_id"], line.message) for line, owner in exclusions if line.message]
        )
        named = [(owner, line.memory) for line, owner in exclusions if line.memory]
        digests = {owner["number"]: bytes.fromhex(memory.sha256) for owner, memory in named}
        written = await self._run(_WRITTEN, [{**owner, "at": memory.created_at} for owner, memory in named])
        memories: dict[int, UUID] = {
            number: episode_id for number, episode_id, content in written if digest_of(content) == digests[number]
        }
        rows = [
            {
                **owner,
                "id": uuid7(),
                "session_key": line.session_id,
                "episode_id": memories.get(number),
                "message_id": next(iter(messages.get(number, ())), None),
            }
            for line, owner in exclusions
            if (number := owner["number"]) in messages or number in memories
        ]
        return dict(await self._run(_ADD_EXCLUSIONS, rows))

    async def _sources(self, named: Sequence[tuple[int, UUID, SourceLine]]) -> dict[int, list[UUID]]:
        """Return the ids of the stored messages, by the numbers of the lines that name them."""
        rows = [
            {
                "number": number,
                "user_id": user_id,
                "session_key": source.session_id,
                "key": stored_key(_key_of(source)),
                "at": source.created_at,
                "role": source.role,
            }
            for number, user_id, source in named
        ]
        found: dict[tuple[int, int], UUID] = {}
        for number, place, imported, said, content in await self._run(_SOURCES, rows):
            is_said = content is not None and digest_of(content).hex() == named[place - 1][2].sha256
            if imported is not None or is_said:
                found.setdefault((number, place), imported or said)
        of_line: dict[int, list[UUID]] = {}
        for (number, _), message_id in found.items():
            of_line.setdefault(number, []).append(message_id)
        return of_line


def _identity(episode: Owned[EpisodeLine]) -> tuple[Any, ...]:
    line, owner = episode
    whose = (owner[name] for name in ("user_id", "expert_id", "space_id", "conversation_id"))
    return *whose, line.episode_type, line.content, line.created_at


def _key_of(source: SourceLine) -> str:
    return import_key(
        source.session_id,
        external_id=source.external_id,
        at=source.created_at,
        role=source.role,
        sha256=source.sha256,
    )
