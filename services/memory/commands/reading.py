"""What is read to resolve memory commands: what may be meant, and what stands around it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.rows import class_row, tuple_row

from services.encryption.search import like_any
from services.memory.blocks import Owner
from services.memory.commands import statements as sql
from services.memory.commands.categories import asks_for_all
from services.memory.commands.holdings import CoreContent, CoreSections, Holdings, items_of
from services.memory.commands.pieces import Stored
from services.memory.core import CoreMemory
from services.platform.postgres import Database
from services.text.clauses import statements
from services.text.concepts import facets, kinds_of, telling_concepts, words_for
from services.text.language import Language
from state.memory import Command, Recognised

_MOST_MENTIONS = 300
_MOST_FOR_NEWS = 60
_MOST_SCANNED = 10_000
"""Newest statements that are searched where the database cannot read them."""
_ANYTHING = ["%"]
_SHORTEST_STEM = 5
_RECENT = 8
_JUST_BEFORE = 2
"""Messages of the user to which a correction refers that names nothing."""


@dataclass(frozen=True)
class ResolutionRequest:
    """The message with the commands."""

    owner: Owner
    conversation_id: UUID
    message_id: UUID
    message: str
    language: Language
    recognised: Recognised
    reaches_shared: bool = True
    """Whether, in a space, what is forgotten goes from what all spaces share as well."""


class CommandReader:
    """Reads what commands may be about."""

    def __init__(self, database: Database, core: CoreMemory) -> None:
        self._database = database
        self._core = core

    async def core(self, asking: ResolutionRequest) -> CoreSections:
        """The sections of core memory that a command may change."""
        own, shared = await self._core.read(asking.owner), []
        if asking.owner.space_id is not None and asking.reaches_shared:
            shared = await self._core.read(asking.owner.shared)
        return CoreSections(
            {block.section: block.content for block in own}, {block.section: block.content for block in shared}
        )

    async def holdings(
        self, command: Command, asking: ResolutionRequest, core: CoreContent, before: Sequence[Stored]
    ) -> Holdings:
        """The user's statements that may be meant: those that share a word, and the newest; and all items."""
        patterns = _patterns(f"{command.target} {command.about} {command.replacement}")
        if command.kind == "forget" and asks_for_all(asking.message):
            patterns += _patterns(" ".join(words_for(kinds_of(telling_concepts(command.target)))))
        stored = {
            each.id: each
            for some in (patterns, _ANYTHING)
            if some
            for each in await self.mentions(
                asking, some, most=_MOST_FOR_NEWS if command.is_news else _MOST_MENTIONS
            )
            if each.role == "user"
        }
        ordered = sorted(stored.values(), key=lambda each: (each.created_at, each.id))
        return Holdings(ordered, list(items_of(core)), _said_before(before))

    async def filed(self, asking: ResolutionRequest, messages: Sequence[UUID]) -> list[tuple[str, Any, Any]]:
        """Section, old and new content of what core memory was given because of some messages."""
        values = {**vars(asking.owner), "message_ids": [str(each) for each in messages]}
        return await self._database.fetch(asking.owner.tenant_id, sql.FILED, values, tuple_row)

    async def answers(self, asking: ResolutionRequest, messages: Sequence[UUID]) -> list[tuple[UUID, str, UUID]]:
        """Id and content of the answer to each of some messages, and which message it answers."""
        values = {"tenant_id": asking.owner.tenant_id, "message_ids": list(messages)}
        return await self._database.fetch(asking.owner.tenant_id, sql.ANSWERS, values, tuple_row)

    async def mentions(
        self, asking: ResolutionRequest, patterns: list[str], *, most: int = _MOST_MENTIONS
    ) -> list[Stored]:
        """What has any of these patterns, the newest first."""
        values = {
            **vars(asking.owner),
            "message_id": asking.message_id,
            "reaches_shared": asking.reaches_shared,
            "patterns": patterns,
            "most": most,
        }
        if self._database.vault is not None:  # what is encrypted is searched here
            values |= {"patterns": _ANYTHING, "most": most if patterns == _ANYTHING else _MOST_SCANNED}
        found = await self._database.fetch(asking.owner.tenant_id, sql.MENTIONS, values, class_row(Stored))
        if self._database.vault is None or patterns == _ANYTHING:
            return found[:most]
        is_meant = like_any(patterns)
        return [each for each in found if is_meant(each.content)][:most]

    async def before(self, asking: ResolutionRequest) -> list[Stored]:
        """The messages before this one in its conversation, the newest first."""
        values = {
            "tenant_id": asking.owner.tenant_id,
            "conversation_id": asking.conversation_id,
            "message_id": asking.message_id,
            "recent": _RECENT,
        }
        return await self._database.fetch(asking.owner.tenant_id, sql.BEFORE, values, class_row(Stored))


def _said_before(before: Sequence[Stored]) -> list[Stored]:
    """What the user stated just before, the newest first."""
    newest = [each for each in before if each.role == "user"][:_JUST_BEFORE]
    return [each for each in newest if statements(each.content)]


def _patterns(words: str) -> list[str]:
    """Patterns of LIKE, of which whatever shares a word with these matches one."""
    stems = {
        term[:-1] if term.isascii() and len(term) >= _SHORTEST_STEM else term
        for each in facets(words)
        for term in each.terms
    }
    return sorted("%" + re.sub(r"([\\%_])", r"\\\1", stem) + "%" for stem in stems if len(stem) > 1)
