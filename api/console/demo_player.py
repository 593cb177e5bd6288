"""Plays the demo's conversations through turns with a recorded model, and dates their rows back."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage

from graph.builder import build_graph
from graph.turns.log import TurnLog
from graph.turns.run import TurnDriver, TurnRun
from graph.turns.turn_queue import TurnQueue
from services.bootstrap import Services
from services.conversations.turn import TurnRequest
from services.conversations.turns import Turns
from services.errors import Conflict, Unavailable
from services.llm.chat_models import ChatModels
from services.llm.request_form import OnText
from services.memory.core.blocks import Owner
from services.memory.operations import Trigger
from services.summaries.writer import WrittenSummary
from services.text.secrets import Secrets
from services.visits.visit import VisitSchedule, visit_schedule
from state.memory import ItemChange
from state.turn import OpenTurn, TurnInput

DEMO_USER = "demo:lin"
"""User of the demo."""
DEMO_EXPERT = "demo-workshop"
"""The demo's own expert."""

_ANSWERS_AFTER = timedelta(seconds=9)
_GOES_ON_AFTER = timedelta(minutes=2)
_PLAYED = timedelta(days=40)
"""Longer than the demo's month."""

# The rows of a turn are dated back to its made-up moment.
_DATED: Sequence[LiteralString] = (
    "UPDATE messages SET created_at = CASE role WHEN 'user' THEN %(asked)s ELSE %(answered)s END "
    "WHERE turn_id = %(turn_id)s AND tenant_id = %(tenant_id)s",
    "UPDATE turns SET accepted_at = %(asked)s, started_at = %(asked)s, finished_at = %(answered)s "
    "WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s",
    "UPDATE episodes e SET created_at = %(answered)s, learned_at = %(answered)s, indexed_at = NULL FROM turns t "
    "WHERE t.id = %(turn_id)s AND e.tenant_id = %(tenant_id)s "
    "AND t.user_message_id = ANY(e.source_message_ids)",
    "UPDATE core_memory_history h SET at = %(answered)s FROM turns t "
    "WHERE t.id = %(turn_id)s AND h.trigger_message_id = t.user_message_id AND h.tenant_id = %(tenant_id)s",
    "UPDATE memory_operations SET at = %(answered)s WHERE turn_id = %(turn_id)s AND tenant_id = %(tenant_id)s",
)
_CONVERSATION_DATED: Sequence[LiteralString] = (
    "UPDATE conversations SET created_at = %(began)s WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s",
    "UPDATE visits SET started_at = %(began)s, last_active_at = %(ended)s, ended_at = %(over)s, "
    "end_reason = 'idle', daily_due_at = NULL "
    "WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s",
)


class RecordedModels(ChatModels):
    """A stand-in for models that answers each message as recorded."""

    answers: Mapping[str, str]

    async def answer(self, messages: Sequence[BaseMessage], *, on_text: OnText, **_: Any) -> AIMessage:
        """Stream the recorded answer to the last message of the prompt."""
        asked = messages[-1].text
        text = next(answer for said, answer in self.answers.items() if asked.endswith(said))
        on_text(text)
        return AIMessage(text)


class DemoPlayer:
    """Plays conversations through turns, in the given order."""

    def __init__(self, services: Services, tenant_id: UUID, demo: Mapping[str, Any]) -> None:
        models = RecordedModels(services.settings)
        models.answers = {
            said: answer
            for each in demo["conversation"]
            for said, answer in zip(each["said"][::2], each["said"][1::2], strict=True)
        }
        self._services, self._tenant_id, self._timezone = services, tenant_id, demo["timezone"]
        self._idle = visit_schedule(services.settings).idle
        # These turns cause no job that asks a model: nothing is filed, and no visit is summarised.
        turns = Turns(
            services.database,
            services.jobs,
            visits=VisitSchedule(idle=self._idle, summaries=False),
            hiding=services.memory.hiding,
            secrets=Secrets(services.settings.memory_keep_secrets),
        )
        self._driver = TurnDriver(
            build_graph(services.with_others(models=models, turns=turns)).compile(),
            turns,
            TurnQueue(services.leases),
            services.usage.meter,
            services.memory.changes,
            services.memory.foreign_origins,
            services.recent_turns,
        )
        self._told: dict[UUID, WrittenSummary] = {}
        self.turns = 0

    @staticmethod
    def session(conversation: Mapping[str, Any]) -> str:
        """Return the name of a conversation."""
        return f"demo-{conversation['id']}"

    async def play(self, conversation: Mapping[str, Any], began: datetime) -> None:
        """Play a conversation that began at a moment."""
        moment, played, learned = began, [], conversation.get("learned", [])
        for number, message in enumerate(conversation["said"][::2]):
            turn = await self._turn(conversation, message, moment)
            for field, text, of in learned:
                if of == number:
                    await self._learn(turn, field, text)
            played.append((turn, moment))
            moment += _ANSWERS_AFTER + _GOES_ON_AFTER
        for turn, asked in played:  # all together, because a visit counts its messages by their times
            await self._dated(_DATED, turn, asked=asked, answered=asked + _ANSWERS_AFTER)
        ended = moment - _GOES_ON_AFTER
        await self._dated(_CONVERSATION_DATED, turn, began=began, ended=ended, over=ended + self._idle)
        self._told[turn.conversation_id] = _written(conversation)
        await self._services.transcript.change(self._tenant_id, turn.conversation_id, title=conversation["title"])

    async def summarise(self, owner: Owner, days: Mapping[date, Mapping[str, Any]], today: date) -> None:
        """Store the summaries of what was played with an expert; `days` are the days with more than one visit."""
        timezone, store = self._timezone, self._services.daily.store
        for day in await self._services.daily.days(owner, today - _PLAYED, today, timezone):
            told = [self._told[visit.conversation_id] for visit in day.visits]
            for visit, written in zip(day.visits, told, strict=True):
                await store.write_visit(owner.tenant_id, visit, written)
            whole = _written(days[day.date]) if len(told) > 1 else told[0]
            await store.write_day(owner, day.date, timezone, whole, day.visits)

    async def _turn(self, conversation: Mapping[str, Any], message: str, moment: datetime) -> OpenTurn:
        asked = TurnInput(
            user_id=DEMO_USER,
            session_id=self.session(conversation),
            message=message,
            expert=conversation.get("expert"),
        )
        turn = await self._services.turns.open_or_find(TurnRequest(self._tenant_id, asked))
        if not isinstance(turn, OpenTurn):
            raise Conflict("The demo is being loaded already.")
        run = TurnRun(turn, TurnLog(), now=moment.astimezone(UTC))
        await self._driver.run(run)
        if run.log.last.status != "done":
            raise Unavailable(f"A turn of the demo did not end: {run.log.last.content}")
        self.turns += 1
        return run.turn

    async def _learn(self, turn: OpenTurn, field: str, text: str) -> None:
        """File what a message says, as filing does with a model."""
        by = Trigger("filing", turn.user_message_id, turn.conversation_id, turn.turn_id, turn.expert_id)
        owner = Owner(turn.tenant_id, turn.user_id, turn.expert_id)
        learned = [ItemChange("add", "human", field, text)]
        async with self._services.database.tenant(turn.tenant_id) as connection:
            await self._services.memory.core.change_items(connection, owner, learned, by)

    async def _dated(self, statements: Sequence[LiteralString], turn: OpenTurn, **moments: datetime) -> None:
        values = {
            "tenant_id": turn.tenant_id,
            "turn_id": turn.turn_id,
            "conversation_id": turn.conversation_id,
            **moments,
        }
        async with self._services.database.tenant(turn.tenant_id) as connection:
            for statement in statements:
                await connection.execute(statement, values)


def _written(told: Mapping[str, Any]) -> WrittenSummary:
    return WrittenSummary(summary=told["summary"], key_topics=told["topics"])
