"""Files facts about the user in core memory that a model finds while it archives topics.

The messages are old, so only missing facts are added, and only in the user's own words. What core memory says, or
has said since, is unchanged, and nothing removed, corrected or forgotten since comes back."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import structlog

from services.errors import AnamnesisError, InvalidInput
from services.memory.agent.decisions import dated
from services.memory.agent.plan import HUMAN, MOST_OPERATIONS, CoreChange, is_known, settled, texts_of
from services.memory.agent.user_information_answer import ToldItem
from services.memory.blocks import Owner
from services.memory.commands.recogniser import kind_of
from services.memory.core import CoreMemory
from services.memory.items import LIST_FIELDS, SINGLE_FIELDS
from services.memory.operations import Trigger
from services.platform.connections import Connection
from services.search.duplicates import are_duplicates
from services.text.mentions import Subject, known_in
from services.text.tokenizer import informative_terms, lone_characters, terms

# A held message may turn out to be a command, and an experiment's variant may switch memory off for a turn.
_MAY_BE_FILED: LiteralString = """
SELECT m.id, stored.import_key IS NOT NULL
FROM remembered_messages m JOIN messages stored ON stored.id = m.id
LEFT JOIN turns t ON t.id = m.turn_id AND t.tenant_id = m.tenant_id
WHERE m.tenant_id = %(tenant_id)s AND m.conversation_id = %(conversation_id)s AND m.id = ANY(%(message_ids)s)
  AND NOT EXISTS (
      SELECT FROM episodes e
      WHERE e.conversation_id = m.conversation_id AND e.held_at IS NOT NULL AND m.id = ANY(e.source_message_ids)
  )
  AND NOT EXISTS (
      SELECT FROM jsonb_each_text(t.experiments) AS given (key, value)
      JOIN experiments x ON x.id = given.key::uuid AND x.tenant_id = m.tenant_id
      CROSS JOIN jsonb_array_elements(x.variants) AS variant
      WHERE variant->>'name' = given.value
        AND variant->'settings'->'parts_off' ?| ARRAY['core_memory', 'memory_agent']
  )
"""

_COMMANDS: LiteralString = """
SELECT at, query FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_command' AND at >= %(since)s
  AND field IN ('forget', 'do_not_remember', 'correct') AND undone_at IS NULL AND query IS NOT NULL
"""

# The last operation that contains an item is the one that removed it. A removed section leaves no values. An
# encrypted value is a string, and is compared by the caller.
_CHANGES: LiteralString = """
SELECT at, type, old_value FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type LIKE 'core\\_memory\\_%%' AND at >= %(since)s
  AND field = %(section)s AND (type = 'core_memory_delete' OR jsonb_typeof(old_value) = 'string'
      OR old_value::text ILIKE ANY(%(patterns)s))
ORDER BY at DESC, id DESC LIMIT 300
"""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Stretch:
    """The messages that are archived together, and their owner."""

    owner: Owner
    conversation_id: UUID
    timezone: str
    """The user's time zone, for relative dates."""
    first_message_id: UUID
    last_message_id: UUID


@dataclass(frozen=True)
class _Since:
    """Changes of core memory since the messages."""

    commands: Sequence[tuple[datetime, Subject]] = ()
    """Texts to be forgotten, left out or corrected."""
    before: Sequence[tuple[datetime, Mapping[str, Any]]] = ()
    """Contents before the changes."""
    removed_at: Sequence[datetime] = ()
    """When the whole section was removed."""

    def forbids(self, change: CoreChange, said_at: datetime) -> bool:
        """Whether what a change adds was removed after it was said, or was to be forgotten."""
        if any(at >= said_at for at in self.removed_at):
            return True
        if any(at >= said_at and _says(content, change) for at, content in self.before):
            return True
        text = f"{change.field.replace('_', ' ')}: {change.value}"
        return any(
            at >= said_at and (subject.touches(text) or bool(known_in([change.value], subject)))
            for at, subject in self.commands
        )


class UserInformation:
    """Files what models report about users when they archive topics."""

    def __init__(self, core_memory: CoreMemory) -> None:
        self._core_memory = core_memory

    async def file(self, connection: Connection, stretch: Stretch, items: Sequence[ToldItem]) -> int:
        """Add the items that are missing to core memory, in the transaction that archives; return how many.

        A failure is logged and rolls back what was filed, but not the rest of the transaction.
        """
        try:
            async with connection.transaction():  # a savepoint
                return await self._file(connection, stretch, items)
        except (AnamnesisError, psycopg.Error) as error:
            reason = error.message if isinstance(error, AnamnesisError) else type(error).__name__
            log.warning("no user information filed", conversation_id=str(stretch.conversation_id), reason=reason)
            return 0

    async def _file(self, connection: Connection, stretch: Stretch, items: Sequence[ToldItem]) -> int:
        items = await _that_may_be_filed(connection, stretch, items)
        if not items:
            return 0
        content = await self._core_memory.locked_content(connection, stretch.owner, HUMAN)
        since = await _since(connection, stretch, items)
        filed = 0
        for item in items:
            change = CoreChange(action="add", field=item.field, value=item.value)
            dated_change = dated(change, item.source.at, stretch.timezone)
            if filed == MOST_OPERATIONS or not isinstance(dated_change, CoreChange):
                break
            change = dated_change
            if not _is_missing(change, content, item.source.at.date()) or since.forbids(change, item.source.at):
                continue
            try:
                changed = await self._core_memory.change_items(
                    stretch.owner, [change.as_item_change()], _trigger(stretch, item), connection=connection
                )
            except InvalidInput as error:  # no room; nothing is dropped for old facts
                log.info("user information was refused", field=error.field, reason=error.message)
                continue
            content = next(block.content for block in changed.blocks if block.section == HUMAN)
            filed += 1
        return filed


async def _that_may_be_filed(
    connection: Connection, stretch: Stretch, items: Sequence[ToldItem]
) -> list[ToldItem]:
    values = {
        "tenant_id": stretch.owner.tenant_id,
        "conversation_id": stretch.conversation_id,
        "message_ids": [item.source.id for item in items],
    }
    rows = await (await connection.execute(_MAY_BE_FILED, values)).fetchall()
    is_imported: dict[UUID, bool] = dict(rows)
    return [
        item
        for item in items
        if item.source.id in is_imported and not (is_imported[item.source.id] and _guides_answers(item))
    ]


def _guides_answers(item: ToldItem) -> bool:
    """Whether an item is a wish about all answers; imported messages did not ask this service."""
    return item.field == "wishes" or "standing" in (kind_of(item.value), kind_of(item.source.content))


async def _since(connection: Connection, stretch: Stretch, items: Sequence[ToldItem]) -> _Since:
    values: dict[str, Any] = {
        **vars(stretch.owner),
        "since": min(item.source.at for item in items),
        "section": HUMAN,
        "patterns": sorted({pattern for item in items for pattern in _patterns(item.value)}),
    }
    commands = await (await connection.execute(_COMMANDS, values)).fetchall()
    changes = await (await connection.execute(_CHANGES, values)).fetchall()
    return _Since(
        commands=[(at, Subject.of(query)) for at, query in commands],
        before=[(at, old) for at, _, old in changes if old],
        removed_at=[at for at, kind, _ in changes if kind == "core_memory_delete"],
    )


def _patterns(value: str) -> list[str]:
    return Subject.of(value).patterns() or ["%" + re.sub(r"([\\%_])", r"\\\1", value) + "%"]


def _is_missing(change: CoreChange, content: Mapping[str, Any], day: date) -> bool:
    """Whether core memory neither contains what a change adds, nor anything that it would contradict."""
    there = content.get(change.field)
    if there is not None and (change.field in SINGLE_FIELDS or not isinstance(there, list)):
        return False
    return not _says(content, change) and settled(change, content, day) == [change]


def _says(content: Mapping[str, Any], change: CoreChange) -> bool:
    """Whether a section's content says what a change adds, perhaps in a few more words."""
    if is_known(change, content):
        return True
    texts = texts_of(content)
    if any(are_duplicates(change.value, text) for text in texts):
        return True
    words = informative_terms(change.value) or lone_characters(change.value)
    if change.field in SINGLE_FIELDS | LIST_FIELDS:
        texts = texts_of(content.get(change.field))
    return bool(words) and any(words <= frozenset(terms(text)) for text in texts)


def _trigger(stretch: Stretch, item: ToldItem) -> Trigger:
    return Trigger(
        "topics",
        item.source.id,
        stretch.conversation_id,
        expert_id=stretch.owner.expert_id,
        space_id=stretch.owner.space_id,
        details={
            "first_message_id": str(stretch.first_message_id),
            "last_message_id": str(stretch.last_message_id),
        },
    )
