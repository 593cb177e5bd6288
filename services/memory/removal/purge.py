"""Purges what a retraction keeps so that it can be undone, and every other copy of it that PostgreSQL holds."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from services.encryption.marks import WordsDigest, WordsJson, all_words
from services.memory.blocks import Change
from services.memory.items import item_text, values_of
from services.memory.model import Memory
from services.memory.remainders import Words, words_of
from services.memory.removal import purge_sql as sql
from services.memory.removal.tables import Rows
from services.memory.removal.targets import TargetPlan, ValueTarget, without_topic
from services.platform.connections import Connection

Gone = frozenset[tuple[str, str]]
_DIGEST_BYTES = 16


@dataclass
class Purged:
    """What was removed, with the texts by which a receipt can be checked."""

    episodes: list[tuple[UUID, str | None]] = field(default_factory=list)
    values: list[ValueTarget] = field(default_factory=list)
    messages: list[tuple[UUID, str]] = field(default_factory=list)
    """Those that were deleted, as a whole or in part."""
    titles: list[str] = field(default_factory=list)
    prompts: int = 0
    turn_ids: list[UUID] = field(default_factory=list)


class Purge(Rows):
    """Purges within one transaction, which has retracted already."""

    def __init__(self, connection: Connection, plan: TargetPlan, operation_ids: Sequence[UUID]) -> None:
        super().__init__(
            connection,
            {
                **plan.whose,
                "operation_ids": list(operation_ids),
                "message_ids": list(plan.messages),
                "texts": all_words(plan.messages.values()),
                "whole_ids": plan.whole,
            },
        )
        self._plan = plan

    async def remove(self, before: Mapping[UUID, Mapping[str, Any]], *, delete_messages: bool) -> Purged:
        """Purge; `before` is the content of each section of core memory before the retraction."""
        places = await self.all(sql.PLACES)
        purged = Purged(turn_ids=sorted({row[1] for row in places}))
        self.values |= {"conversation_ids": list({row[0] for row in places}), "turn_ids": purged.turn_ids}
        [(purged.prompts,)] = await self.all(sql.PROMPTS)
        await self.run(sql.KEEP_OUT)
        purged.episodes = [(row[0], row[1]) for row in await self.all(sql.EPISODES)]
        await self.run(sql.OPERATIONS)
        await self.run(sql.SCRUB_EPISODE_OPERATIONS, episode_ids=[row[0] for row in purged.episodes])
        await self.run(sql.SCRUB_COMMANDS_ABOUT)
        await self.run(sql.SCRUB_TURN_OPERATIONS)
        purged.values = await self._core_memory(before)
        noted = await self._notes([each.text for each in purged.values])
        purged.turn_ids = sorted({*purged.turn_ids, *noted})
        await self.run(sql.TURNS)
        if delete_messages:
            purged.messages = [(row[0], row[1]) for row in await self.all(sql.TEXTS)]
            purged.titles = await self.firsts(sql.GONE_TITLES)
            await self.run(sql.TITLES)
            await self.run(sql.FEEDBACK)
            await self.run(sql.MESSAGES)
        await self._versions()
        await self._keep_away(purged, delete_messages=delete_messages)
        return purged

    async def _keep_away(self, purged: Purged, *, delete_messages: bool) -> None:
        """Note digests of what is gone, by which an import knows it."""
        await self.run(sql.KEEP_MESSAGES_AWAY, deleted=delete_messages)
        digests = [word_digest("episode", text) for _, text in purged.episodes if text]
        digests += [word_digest("value", each.field, each.text) for each in purged.values]
        digests += [word_digest("title", title) for title in purged.titles]
        gone = [WordsDigest(each) for each in dict.fromkeys(digests)]
        if gone:
            await self.run(sql.KEEP_AWAY, digests=gone)

    async def _versions(self) -> None:
        """Remove what memory held before; last, because every change above keeps what it changes."""
        await self.run(sql.VERSIONS)
        topic = self._plan.topic
        if topic is not None:
            texts = await self.all(sql.VERSION_TEXTS)
            told = [version_id for version_id, text in texts if without_topic(text, topic) is not None]
            await self.run(sql.REMOVE_VERSIONS, version_ids=told)

    async def _core_memory(self, before: Mapping[UUID, Mapping[str, Any]]) -> list[ValueTarget]:
        """Take gone values out of the history and the log of each section; return those that held until now."""
        removed = []
        for block_id, section, expert_id, space_id, content in await self.all(sql.BLOCKS):
            rows = await self.all(sql.HISTORY, block_id=block_id)
            history = [Change(*row) for row in rows]
            held = set(values_of(before.get(block_id, {}))) - set(values_of(content))
            removed += [ValueTarget(section, *value) for value in sorted(held)]
            gone = frozenset(held | self._told(history) - set(values_of(content)))
            if not gone:
                continue
            for change in history:
                old, new = _jsonb(change.old, gone), _jsonb(change.new, gone)
                if (old and old.obj, new and new.obj) != (change.old, change.new):
                    version = {"block_id": block_id, "version": change.version}
                    await self.run(sql.REWRITE_VERSION, **version, old=old, new=new)
            whose = {"section": section, "expert_id": expert_id, "space_id": space_id}
            for operation_id, old, new in await self.all(sql.SECTION_OPERATIONS, **whose):
                await self.run(
                    sql.REWRITE_OPERATION, id=operation_id, old=_jsonb(old, gone), new=_jsonb(new, gone)
                )
        return removed

    async def _notes(self, gone: Sequence[str]) -> list[UUID]:
        """Scrub what commands, searches and turns noted with these values in it; return the turns."""
        if not gone:
            return []
        found = []
        for notes, scrub in (
            (sql.OPERATION_NOTES, sql.SCRUB_OPERATION_NOTES),
            (sql.TURN_NOTES, sql.SCRUB_TURN_NOTES),
        ):
            found = [row[0] for row in await self.all(notes) if _repeats(row[1:], gone)]
            await self.run(scrub, ids=found)
        return found

    def _told(self, history: Sequence[Change]) -> set[tuple[str, str]]:
        """Values that any version had and that the messages brought in, or that speak of what is forgotten."""
        every = {
            value for change in history for side in (change.old, change.new) for value in values_of(side or {})
        }
        brought, whole = _brought_in(history), set(self._plan.whole)
        return {
            value
            for value in every
            if _speaks_of(self._plan.topic, *value)
            or (value in brought and brought[value].trigger_message_id in whole)
        }


def word_digest(kind: Literal["episode", "value", "title"], *said: str) -> bytes:
    """Return the digest by which words are known again that are kept nowhere.

    They are those of a written memory, of a value of core memory with its field, or of a title.
    """
    text = "\0".join((kind, *said)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


def without_values(content: Mapping[str, Any], gone: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """A section's content without some of its values; what holds nothing any more is left out."""
    dropped = set(gone)
    kept: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            inner = {(path.partition(".")[2], text) for path, text in dropped if path.partition(".")[0] == name}
            kept[name] = without_values(value, inner)
        elif isinstance(value, list):
            kept[name] = [item for item in value if (name, item_text(item)) not in dropped]
        elif (name, item_text(value)) not in dropped:
            kept[name] = value
    return {name: value for name, value in kept.items() if value not in ({}, []) or content[name] == value}


def _jsonb(content: Mapping[str, Any] | None, gone: Gone) -> WordsJson | None:
    return None if content is None else WordsJson(without_values(content, gone))


def _repeats(noted: Any, values: Sequence[str]) -> bool:
    """Whether any text within a JSON value has one of these values in it."""
    if isinstance(noted, str):
        return any(value.casefold() in noted.casefold() for value in values)
    if isinstance(noted, Mapping):
        noted = noted.values()
    return isinstance(noted, Iterable) and any(_repeats(each, values) for each in noted)


def _brought_in(history: Sequence[Change]) -> dict[tuple[str, str], Change]:
    """Return the last change that brought each value in, of a history that is the newest first."""
    brought: dict[tuple[str, str], Change] = {}
    for change in history:
        for value in set(values_of(change.new or {})) - set(values_of(change.old or {})):
            brought.setdefault(value, change)
    return brought


def _speaks_of(topic: Words | None, field: str, text: str) -> bool:
    return topic is not None and topic.covered_by(words_of(Memory("value", "", text, field=field)))
