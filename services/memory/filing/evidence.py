"""Reads the evidence against which operations are checked: the nearest memories, and who said which words."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from services.memory.core.values import CoreValues
from services.memory.filing.checks import Evidence
from services.memory.filing.prompt import Batch
from services.memory.filing.store import request_of
from services.memory.finding.finder import MemoryFinder
from services.memory.model import Memory
from services.memory.reading.foreign_words import foreign_text, own_text
from services.memory.reading.trust import ForeignOrigins

_LONGEST_QUERY = 1_000
"""How many characters of a message are used to search memories."""


class FilingEvidence:
    """Reads the memories that new messages may change, and tells who said which words."""

    def __init__(self, finder: MemoryFinder, values: CoreValues, origins: ForeignOrigins) -> None:
        self._finder = finder
        self._values = values
        self._origins = origins

    async def of(self, batch: Batch) -> tuple[Batch, Evidence]:
        """Return a batch with its nearest memories, and the evidence for its operations."""
        memories, foreign_ids = await self._memories(batch)
        said, answers = list[str](), list[str]()
        known = [each.text for each in memories.values() if each.id not in foreign_ids]
        foreign = [each.text for each in memories.values() if each.id in foreign_ids]
        for each in [*batch.earlier, *batch.messages.values()]:
            if each.is_users:
                said.append(own_text(each.content))
                foreign.append(foreign_text(each.content))
            else:
                answers.append(each.said_by(others=False))
                foreign.append(each.said_by(others=True))
        shown = replace(batch, memories=memories)
        foreign = [each for each in foreign if each.strip()]
        return shown, Evidence(shown.said, said, answers, known, foreign, memories, beside=shown.beside)

    async def stale(self, batch: Batch, memories: Mapping[str, Memory]) -> set[str]:
        """Return the short ids of memories and messages in a batch that have changed since they were read."""
        said = {each.id: key for key, each in batch.messages.items() if each.is_users}
        left = await self._finder.messages(batch.owner, list(said))
        texts = {said[each.message_id]: each.text for each in left if each.message_id in said}
        stale = {key for key in said.values() if texts.get(key) != batch.messages[key].content}
        for key, memory in memories.items():
            now = await self._finder.by_id(batch.owner, memory.id)
            if now is None or now.text != memory.text:
                stale.add(key)
        return stale

    async def _memories(self, batch: Batch) -> tuple[dict[str, Memory], set[str]]:
        """Return the nearest memories by their short ids, and the ids of those in words of others."""
        owner, request = batch.owner, request_of(batch.owner, batch.last)
        # One by one: their turns have had them embedded, and of a long text only the beginning is.
        said = [each[:_LONGEST_QUERY] for each in batch.said.values()]
        nearest, read = await asyncio.gather(
            self._finder.nearest(request, said), self._values.read(owner.tenant_id, owner.user_id)
        )
        foreign = set[str]()
        if written := [each.id for each in nearest if each.kind == "written"]:
            found = await self._origins.among(owner.tenant_id, owner.user_id, episodes=written)
            foreign = set(found.episodes)
        values = {(each.section, each.field, each.text): each for each in read if each.holds}
        memories = {}
        for number, memory in enumerate(nearest, 1):
            value = values.get((memory.section, memory.field, memory.text))
            if value is not None:
                memory = replace(memory, pinned=value.is_pinned, at=value.since)  # noqa: PLW2901
                foreign |= {memory.id} if value.is_foreign else set()
            memories[f"m{number}"] = memory
        return memories, foreign
