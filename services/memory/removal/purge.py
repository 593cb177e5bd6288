"""Deletes what a retraction keeps for an undo, and every other copy of it in PostgreSQL."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from services.encryption.marks import WordsDigest, WordsJson, all_words
from services.memory.core.items import item_text, values_of
from services.memory.removal import purge_sql as sql
from services.memory.removal.tables import Rows
from services.memory.removal.targets import TargetPlan, ValueTarget, without_topic
from services.platform.connections import Connection

Gone = frozenset[tuple[str, str]]
_DIGEST_BYTES = 16


@dataclass
class Purged:
    """Everything that was deleted, with the texts by which a receipt can be checked."""

    episodes: list[tuple[UUID, str | None]] = field(default_factory=list)
    values: list[ValueTarget] = field(default_factory=list)
    messages: list[tuple[UUID, str]] = field(default_factory=list)
    """Messages that were deleted, in whole or in part."""
    titles: list[str] = field(default_factory=list)
    prompts: int = 0
    turn_ids: list[UUID] = field(default_factory=list)


class Purge(Rows):
    """Deletes within one transaction that has retracted the content already."""

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

    async def remove(self, *, delete_messages: bool) -> Purged:
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
        purged.values = await self._core_memory()
        noted = await self._notes([each.text for each in purged.values])
        purged.turn_ids = sorted({*purged.turn_ids, *noted})
        await self.run(sql.TURNS)
        await self._promises()
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
        """Store digests of what is gone, by which a later import recognises it."""
        await self.run(sql.KEEP_MESSAGES_AWAY, deleted=delete_messages)
        digests = [word_digest("episode", text) for _, text in purged.episodes if text]
        digests += [word_digest("value", each.field, each.text) for each in purged.values]
        digests += [word_digest("title", title) for title in purged.titles]
        gone = [WordsDigest(each) for each in dict.fromkeys(digests)]
        if gone:
            await self.run(sql.KEEP_AWAY, digests=gone)

    async def _versions(self) -> None:
        """Delete earlier states of memory. This comes last, because every change above stores the state before
        it."""
        await self.run(sql.VERSIONS)
        topic = self._plan.topic
        if topic is not None:
            texts = await self.all(sql.VERSION_TEXTS)
            told = [version_id for version_id, text in texts if without_topic(text, topic) is not None]
            await self.run(sql.REMOVE_VERSIONS, version_ids=told)

    async def _promises(self) -> None:
        """Delete promises that were asked for in words that go, or that repeat them."""
        topic, messages = self._plan.topic, self._plan.messages
        gone = [
            promise_id
            for promise_id, message_id, quote, text in await self.all(sql.PROMISES)
            if (message_id in messages and quote not in (messages[message_id] or ""))
            or (topic is not None and without_topic(text, topic) is not None)
        ]
        if gone:
            await self.run(sql.REMOVE_PROMISES, promise_ids=gone)

    async def _core_memory(self) -> list[ValueTarget]:
        """Delete removed values from the history and the log of each section; return those that were still
        present."""
        removed = []
        for block_id, section, expert_id, space_id, content in await self.all(sql.BLOCKS):
            known = {(each.field, each.text): each for each in self._plan.values if each.block_id == block_id}
            left = set(values_of(content))
            held = {named for named, value in known.items() if value.holds} - left
            removed += [ValueTarget(section, *value) for value in sorted(held)]
            gone = frozenset(held | {named for named, value in known.items() if self._plan.names(value)} - left)
            if not gone:
                continue
            for version, *was in await self.all(sql.HISTORY, block_id=block_id):
                old, new = (_jsonb(each, gone) for each in was)
                if [old and old.obj, new and new.obj] != was:
                    await self.run(sql.REWRITE_VERSION, block_id=block_id, version=version, old=old, new=new)
            whose = {"section": section, "expert_id": expert_id, "space_id": space_id}
            for operation_id, old, new in await self.all(sql.SECTION_OPERATIONS, **whose):
                await self.run(
                    sql.REWRITE_OPERATION, id=operation_id, old=_jsonb(old, gone), new=_jsonb(new, gone)
                )
        return removed

    async def _notes(self, gone: Sequence[str]) -> list[UUID]:
        """Delete the values from the notes of commands, searches and turns; return the turns."""
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


def word_digest(kind: Literal["episode", "value", "title"], *said: str) -> bytes:
    """Return the digest by which deleted words are recognised: those of a written memory, of a value of core
    memory with its field, or of a title."""
    text = "\0".join((kind, *said)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


def without_values(content: Mapping[str, Any], gone: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return a section's content without some of its values; parts that become empty are left out."""
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
    """Return whether any text inside a JSON value contains one of these values."""
    if isinstance(noted, str):
        return any(value.casefold() in noted.casefold() for value in values)
    if isinstance(noted, Mapping):
        noted = noted.values()
    return isinstance(noted, Iterable) and any(_repeats(each, values) for each in noted)
