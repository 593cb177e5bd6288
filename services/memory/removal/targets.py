"""Targets of forgetting, and the messages, memories and values that each of them names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Annotated, Any, LiteralString
from uuid import UUID

from psycopg.rows import tuple_row
from pydantic import ConfigDict, Field

from services.errors import InvalidInput, NotFound
from services.memory.core.blocks import Owner
from services.memory.core.content import SECTION_PATTERN
from services.memory.core.items import removed_value
from services.memory.core.sql import OWNER
from services.memory.core.values import CoreValue, CoreValues
from services.memory.model import ChangeRequest, Memory
from services.memory.operations import Trigger
from services.memory.planning.planner import ChangePlanner
from services.memory.planning.wording import summary_of
from services.memory.reading.what_stays import what_stays
from services.memory.reading.words import Words, words_of
from services.platform.postgres import Database
from services.time_reference.local_days import bounds
from state.memory import ItemChange, PlannedChange

KINDS = ("message_id", "episode_id", "value", "conversation_id", "day", "since", "topic")
_MOST_RETRACTED = 5000

# Of a message of the user its answer as well, which was made from it. `is_known` = memory still has it.
_MESSAGES: LiteralString = """
SELECT m.id, m.content, m.retracted_at IS NULL FROM messages m
JOIN conversations c ON c.id = m.conversation_id
WHERE m.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s
  AND (%(expert_id)s::uuid IS NULL OR c.expert_id = %(expert_id)s)
  AND (%(message_id)s::uuid IS NULL OR m.id = %(message_id)s OR EXISTS (
      SELECT FROM messages asked WHERE asked.id = %(message_id)s AND asked.role = 'user'
        AND asked.turn_id = m.turn_id AND asked.conversation_id = m.conversation_id))
  AND (%(conversation_id)s::uuid IS NULL OR c.id = %(conversation_id)s)
  AND (%(since)s::timestamptz IS NULL OR m.created_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR m.created_at < %(until)s)
ORDER BY m.created_at, m.id
"""

_EPISODE: LiteralString = """
SELECT expert_id, space_id, content IS NULL, source_message_ids FROM episodes
WHERE id = %(episode_id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s
"""

# What an earlier command took out of memory can still be undone, so it is stored.
_RETRACTED: LiteralString = """
SELECT m.id, m.content FROM messages m JOIN conversations c ON c.id = m.conversation_id
WHERE m.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s
  AND (m.retracted_at IS NOT NULL OR m.memory_text IS NOT NULL)
ORDER BY m.created_at DESC LIMIT %(most)s
"""

_OWNERS: LiteralString = """
SELECT DISTINCT expert_id, space_id FROM (
    SELECT expert_id, space_id FROM conversations WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
    UNION ALL
    SELECT expert_id, space_id FROM core_memory_blocks WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
) AS held
WHERE %(expert_id)s::uuid IS NULL OR expert_id = %(expert_id)s
ORDER BY expert_id, space_id
"""


@dataclass(frozen=True)
class ValueTarget:
    """A single value of core memory."""

    __pydantic_config__ = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    section: Annotated[str, Field(pattern=SECTION_PATTERN)]
    field: Annotated[str, Field(min_length=1, max_length=200)]
    """Name of the field; for a nested value the names joined by dots."""
    text: Annotated[str, Field(min_length=1, max_length=4096)]


@dataclass(frozen=True)
class Target:
    """A thing to forget. Exactly one field is given; `until` and `expert` narrow it."""

    message_id: UUID | None = None
    """A message; a message of the user is forgotten with its answer."""
    episode_id: UUID | None = None
    value: ValueTarget | None = None
    conversation_id: UUID | None = None
    day: date | None = None
    """A day in the user's time zone."""
    since: datetime | None = None
    """Beginning of a period in which everything said is forgotten, up to `until`."""
    until: datetime | None = None
    """End of the period, not included; None = now."""
    topic: str | None = None
    """A description in the user's words."""
    expert: str | None = None
    """Expert whose memory it is; None = all experts, and `default` for a value."""
    space: str | None = None
    """Space of a value."""

    @property
    def kind(self) -> str:
        """Return the name of the only field that is given. Raises `InvalidInput` if none or several are given."""
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidInput("target", f"must be exactly one of {', '.join(KINDS)}")
        if self.until is not None and self.since is None:
            raise InvalidInput("until", "needs since")
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise InvalidInput("until", "must be after since")
        return given[0]


@dataclass(frozen=True)
class TargetPlan:
    """Everything that a target names."""

    tenant_id: UUID
    user_id: UUID
    changes: list[tuple[Owner, PlannedChange]]
    """Removals to carry out, each with the owner of the memory."""
    messages: dict[UUID, str | None]
    """For each message concerned, the text that stays of it, even if memory no longer knows the message; None =
    nothing stays."""
    values: Sequence[CoreValue]
    """Values that core memory has or once had."""
    topic: Words | None = None
    """Words of a description, which are looked for in values that no longer hold; None for other targets."""

    @property
    def whose(self) -> dict[str, Any]:
        """Return the tenant and the user as values of statements."""
        return {"tenant_id": self.tenant_id, "user_id": self.user_id}

    @property
    def whole(self) -> list[UUID]:
        """Return the messages of which nothing stays."""
        return [message_id for message_id, kept in self.messages.items() if kept is None]

    def names(self, value: CoreValue) -> bool:
        """Return whether a value came from a removed message, or mentions the topic."""
        if value.message_id is not None and self.messages.get(value.message_id, "") is None:
            return True
        return self.topic is not None and self.topic.covered_by(
            words_of(Memory("value", "", value.text, field=value.field))
        )


class TargetPlanner:
    """Finds the messages, memories and values that targets name, and plans their removal."""

    def __init__(self, database: Database, values: CoreValues, planner: ChangePlanner) -> None:
        self._database = database
        self._values = values
        self._planner = planner

    async def plan(self, tenant_id: UUID, user: str, target: Target) -> TargetPlan:
        """Find what a target names. Raises `InvalidInput` if the target is invalid, and `NotFound` if there is no
        such user, expert, message, memory or value."""
        kind = target.kind
        expert = target.expert or ("default" if kind == "value" else None)
        values = {"tenant_id": tenant_id, "user": user, "expert": expert, "space": target.space}
        found = await self._database.fetch(tenant_id, OWNER, values, tuple_row)
        if not found:
            raise NotFound(f"There is no user {user!r}.")
        user_id, expert_id, space_id, timezone = found[0]
        if expert is not None and expert_id is None:
            raise NotFound(f"There is no expert {expert!r}.")
        ids = {"tenant_id": tenant_id, "user": user, "user_id": user_id, "expert_id": expert_id}
        known = await self._values.read(tenant_id, user_id)
        if target.topic is not None:
            return await self._topic(ids, known, target.topic)
        if target.value is not None:
            owner = Owner(tenant_id, user_id, expert_id, space_id)
            has_space = space_id is not None or target.space is None
            return self._value(owner, known, target.value, has_space=has_space)
        if target.episode_id is not None:
            return await self._episode(ids, known, target.episode_id)
        since, until = target.since, target.until
        if target.day is not None:
            since, until = bounds(target.day, target.day, timezone)
        span = {"since": since, "until": until}
        named = {"message_id": target.message_id, "conversation_id": target.conversation_id}
        rows = await self._database.fetch(tenant_id, _MESSAGES, {**ids, **named, **span}, tuple_row)
        if not rows:
            raise NotFound("There is no such message of the user.")
        remembered = [row[0] for row in rows if row[2]]
        return await self._of_messages(ids, known, [row[0] for row in rows], remembered)

    async def _of_messages(
        self,
        ids: dict[str, Any],
        known: Sequence[CoreValue],
        message_ids: Sequence[UUID],
        remembered: Sequence[UUID],
    ) -> TargetPlan:
        """Return the plan to forget messages as a whole, with the values of core memory that they brought in."""
        tenant_id, user_id = ids["tenant_id"], ids["user_id"]
        by_owner: dict[Owner, list[ItemChange]] = {}
        brought_in = set(message_ids)
        for value in known:
            if value.holds and value.message_id in brought_in:
                owner = Owner(tenant_id, user_id, value.expert_id, value.space_id)
                by_owner.setdefault(owner, []).append(removed_value(value.section, value.field, value.text))
        first = next(iter(by_owner), None) or Owner(tenant_id, user_id, await self._any_expert(ids))
        changes = [(first, planned_removal(messages=remembered, items=by_owner.pop(first, [])))]
        changes += [(owner, planned_removal(items=removals)) for owner, removals in by_owner.items()]
        return TargetPlan(tenant_id, user_id, changes, dict.fromkeys(message_ids), known)

    async def _any_expert(self, ids: dict[str, Any]) -> UUID:
        owners = await self._database.fetch(ids["tenant_id"], _OWNERS, ids, tuple_row)
        if not owners:
            raise NotFound("Memory holds nothing of the user.")
        expert_id: UUID = owners[0][0]
        return expert_id

    async def _episode(self, ids: dict[str, Any], known: Sequence[CoreValue], episode_id: UUID) -> TargetPlan:
        tenant_id, user_id = ids["tenant_id"], ids["user_id"]
        rows = await self._database.fetch(tenant_id, _EPISODE, {**ids, "episode_id": episode_id}, tuple_row)
        if not rows:
            raise NotFound(f"There is no episode {episode_id}.")
        expert_id, space_id, is_turn, sources = rows[0]
        if is_turn:
            return await self._of_messages(ids, known, sources, sources)
        owner = Owner(tenant_id, user_id, expert_id, space_id)
        return TargetPlan(tenant_id, user_id, [(owner, planned_removal(episodes=[episode_id]))], {}, known)

    @staticmethod
    def _value(owner: Owner, known: Sequence[CoreValue], value: ValueTarget, *, has_space: bool) -> TargetPlan:
        named = (value.section, value.field, value.text, owner.expert_id, owner.space_id)
        held = {
            (each.section, each.field, each.text, each.expert_id, each.space_id) for each in known if each.holds
        }
        if named not in held or not has_space:
            raise NotFound(f"There is no such value in the section {value.section!r}.")
        planned = planned_removal(items=[removed_value(value.section, value.field, value.text)])
        return TargetPlan(owner.tenant_id, owner.user_id, [(owner, planned)], {}, known)

    async def _topic(self, ids: dict[str, Any], known: Sequence[CoreValue], topic: str) -> TargetPlan:
        tenant_id, user_id = ids["tenant_id"], ids["user_id"]
        words = Words.of(topic)
        changes: list[tuple[Owner, PlannedChange]] = []
        messages: dict[UUID, str | None] = {}
        for expert_id, space_id in await self._database.fetch(tenant_id, _OWNERS, ids, tuple_row):
            owner = Owner(tenant_id, user_id, expert_id, space_id)
            request = ChangeRequest.outside_of_turns(owner, Trigger("user"))
            planned = await self._planner.plan_named(request, topic, everything=True, takes_all=True)
            if planned.changes:
                changes.append((owner, planned))
                messages |= {UUID(message_id): text for message_id, text in planned.messages.items()}
        values = {**ids, "most": _MOST_RETRACTED}
        for message_id, content in await self._database.fetch(tenant_id, _RETRACTED, values, tuple_row):
            rest = without_topic(content, words)
            if rest is not None and message_id not in messages:
                messages[message_id] = rest or None
        return TargetPlan(tenant_id, user_id, changes, messages, known, words)


def without_topic(text: str, topic: Words) -> str | None:
    """Return a text without the clauses that have all words of a description; None if there are no such
    clauses."""
    rest = what_stays(text, lambda clause: topic.covered_by(Words.of(clause)))
    return rest.text if rest.gone else None


def planned_removal(
    messages: Sequence[UUID] = (), episodes: Sequence[UUID] = (), items: Sequence[ItemChange] = ()
) -> PlannedChange:
    """Return the plan to hide messages as a whole, memories, and values of core memory."""
    return PlannedChange.forgetting(
        summary_of("forget", [], "en"),
        messages=dict.fromkeys(map(str, messages)),
        items=items,
        episodes=[str(each) for each in episodes],
    )


def described(target: Target) -> dict[str, Any]:
    """Return a target in the form in which a receipt names it: ids and times, but no words of a text by the
    user."""
    hidden = replace(target, topic=None, value=None)
    named = {name: str(value) for name, value in vars(hidden).items() if value is not None}
    return {"kind": target.kind.removesuffix("_id").replace("since", "span"), **named}
