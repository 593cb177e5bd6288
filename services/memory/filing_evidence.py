"""What the filing model is shown, and whose words that is."""

import asyncio
from dataclasses import replace

from services.memory.core_values import CoreValues
from services.memory.filing_checks import Evidence
from services.memory.filing_plans import request_of
from services.memory.filing_prompt import Batch
from services.memory.filing_store import StoredBatch
from services.memory.finding import MemoryFinder
from services.memory.foreign_origins import ForeignOrigins
from services.memory.model import Memory
from services.memory.quotes import foreign_text, own_text

_LONGEST_QUERY = 1_000
"""Characters of a message by which memories are sought."""


class FilingEvidence:
    """Reads the memories that new messages may change, and tells whose words everything is."""

    def __init__(self, finder: MemoryFinder, values: CoreValues, origins: ForeignOrigins) -> None:
        self._finder = finder
        self._values = values
        self._origins = origins

    async def of(self, batch: StoredBatch) -> tuple[Batch, Evidence]:
        """Return a batch with the nearest memories, and whose words it is."""
        memories, foreign_ids = await self._memories(batch)
        said, answers = list[str](), list[str]()
        known = [each.text for each in memories.values() if each.id not in foreign_ids]
        foreign = [each.text for each in memories.values() if each.id in foreign_ids]
        for each in [*batch.earlier, *batch.messages.values()]:
            if each.role == "user" and not each.is_foreign:
                said.append(own_text(each.content))
                foreign.append(foreign_text(each.content))
            else:
                (foreign if each.is_foreign else answers).append(each.content)
        shown = replace(batch, memories=memories)
        return shown, Evidence(
            shown.said, said, answers, known, [each for each in foreign if each.strip()], memories
        )

    async def _memories(self, batch: StoredBatch) -> tuple[dict[str, Memory], set[str]]:
        """Return the nearest memories by their short ids, and the ids of those of foreign words."""
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
