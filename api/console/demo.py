"""The demo: a month of a made-up user, up to yesterday, played through turns with a recorded model.

Every answer has all that an answer has: what its prompt showed, what was recalled, what it changed. A turn is
played with the moment at which it is said to have been as its present, and its rows are dated back to it.
"""

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel, Field

from api.access import Admin
from api.paging import NO_CONTENT
from api.problems import CONFLICT, NOT_FOUND, documented
from api.request_bodies import JsonRoute
from graph.builder import build_graph
from graph.turns.log import TurnLog
from graph.turns.run import TurnDriver, TurnRun
from graph.turns.turn_queue import TurnQueue
from services.bootstrap import Services
from services.conversations.experts import NewExpert
from services.conversations.turn import TurnRequest
from services.errors import Conflict, NotFound, Unavailable
from services.experiments.experiments import NewExperiment
from services.knowledge.bases import NewBase
from services.llm.chat_models import ChatModels
from services.llm.request_form import OnText
from services.memory.blocks import Owner
from services.memory.episodes.episode import NewEpisode
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from state.memory import ItemChange
from state.turn import OpenTurn, TurnInput

DEMO_USER = "demo:lin"
"""User of the demo."""

_FILE = Path(__file__).with_name("demo.toml")
_ANSWERS_AFTER = timedelta(seconds=9)
_GOES_ON_AFTER = timedelta(minutes=2)
_WINDOW = 32_000
_IMPORTANCE = 0.7

# The rows of a turn, dated back to when it is said to have been.
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
    "UPDATE visits SET started_at = %(began)s, last_active_at = %(ended)s, daily_due_at = now() "
    "WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s",
)

_MEMORY_DATED: LiteralString = """
UPDATE episodes SET created_at = %(at)s, learned_at = %(at)s, indexed_at = NULL
WHERE id = %(id)s AND tenant_id = %(tenant_id)s
"""


class RecordedModels(ChatModels):
    """Answers each message as it was written down."""

    answers: Mapping[str, str]

    async def answer(self, messages: Sequence[BaseMessage], *, on_text: OnText, **_: Any) -> AIMessage:
        """Stream the answer of the message that the prompt ends with."""
        asked = messages[-1].text
        text = next(answer for said, answer in self.answers.items() if asked.endswith(said))
        on_text(text)
        return AIMessage(text)


class Demo:
    """Loads the demo for a tenant, and removes it."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._demo: dict[str, Any] = tomllib.loads(_FILE.read_text("utf-8"))

    async def load(self, tenant_id: UUID, now: datetime) -> int:
        """Play the month that ends the day before `now`, which has a time zone; return how many turns it has.

        Raises:
            Conflict: the demo is loaded already.
            DatabaseUnavailable: the database does not answer; what was played stays until it is removed.
        """
        services, demo = self._services, self._demo
        with suppress(NotFound):
            await services.users.get(tenant_id, DEMO_USER)
            raise Conflict("The demo is loaded already; remove it first.")
        await services.users.make(tenant_id, DEMO_USER)
        about = {"timezone": demo["timezone"], "locale": "en", "display_name": demo["name"]}
        await services.users.change(tenant_id, DEMO_USER, about)
        await self._set_up(tenant_id)
        player = _Player(services, tenant_id, demo)
        today = now.astimezone(ZoneInfo(demo["timezone"])).date()
        for conversation in sorted(demo["conversation"], key=lambda each: (-each["days_ago"], each["at"])):
            if "base" in conversation:  # earlier answers draw on no document
                await self._give_documents(tenant_id)
            day, clock = today - timedelta(days=conversation["days_ago"]), time.fromisoformat(conversation["at"])
            await player.play(conversation, datetime.combine(day, clock, ZoneInfo(demo["timezone"])))
        await services.experiments.change(tenant_id, demo["experiment"]["name"], {"status": "stopped"})
        await self._remember(tenant_id, now)
        return player.turns

    async def remove(self, tenant_id: UUID) -> None:
        """Remove all of it.

        Raises:
            NotFound: it is not loaded.
        """
        services, demo = self._services, self._demo
        await services.erasure.user(tenant_id, DEMO_USER)
        with suppress(NotFound, Conflict):
            await services.experiments.change(tenant_id, demo["experiment"]["name"], {"status": "stopped"})
        for remove, name in (
            (services.experiments.delete, demo["experiment"]["name"]),
            (services.experts.delete, demo["expert"]["name"]),
            (services.knowledge.bases.delete, demo["base"]["prefix"]),
        ):
            with suppress(NotFound, Conflict):
                await remove(tenant_id, name)

    async def _set_up(self, tenant_id: UUID) -> None:
        """Make who answers, from what, and what is compared; what a load that was cut off has left stays."""
        services, demo = self._services, self._demo
        expert, experiment = demo["expert"], demo["experiment"]
        with suppress(Conflict):
            new = NewExpert(expert["name"], expert["system_prompt"], context_window=_WINDOW)
            await services.experts.create(tenant_id, new)
        variants = [
            {"name": "five", "weight": 1.0, "settings": {}},
            {"name": "ten", "weight": 1.0, "settings": {"recall_items": 10}},
        ]
        with suppress(Conflict):
            await services.experiments.create(
                tenant_id,
                NewExperiment(experiment["name"], variants, experiment["description"], [expert["name"]]),  # type: ignore[arg-type]
            )
        with suppress(Conflict):
            await services.experiments.change(tenant_id, experiment["name"], {"status": "running"})

    async def _give_documents(self, tenant_id: UUID) -> None:
        knowledge, base = self._services.knowledge, self._demo["base"]
        with suppress(Conflict):
            await knowledge.bases.create(tenant_id, NewBase(base["prefix"], base["description"], handler="cited"))
        base_id = await knowledge.documents.base_id(tenant_id, base["prefix"])
        await knowledge.documents.ingest(tenant_id, base_id, base["source"], base["text"].encode())

    async def _remember(self, tenant_id: UUID, now: datetime) -> None:
        """Add what was written down by hand, and a change that waits for the user."""
        memory = self._services.memory
        owner = await memory.core.owner(tenant_id, DEMO_USER, "default")
        await memory.core.replace(owner, "persona", self._demo["persona"], Trigger("user"))
        for each in self._demo["memory"]:
            new = NewEpisode(each["text"], each["type"], _IMPORTANCE, "user_said")
            values = {
                "id": await memory.archive.insert(owner, new, Trigger("user")),
                "tenant_id": tenant_id,
                "at": now - timedelta(days=each["days_ago"]),
            }
            async with self._services.database.tenant(tenant_id) as connection:
                await connection.execute(_MEMORY_DATED, values)
        request = ChangeRequest.outside_of_turns(owner, Trigger("model"))
        await memory.proposals.add(request, "remember", self._demo["proposal"]["text"])


class _Player:
    """Plays conversations through turns, in the order in which they are given."""

    def __init__(self, services: Services, tenant_id: UUID, demo: Mapping[str, Any]) -> None:
        models = RecordedModels(services.settings)
        models.answers = {
            said: answer
            for each in demo["conversation"]
            for said, answer in zip(each["said"][::2], each["said"][1::2], strict=True)
        }
        self._services, self._tenant_id = services, tenant_id
        self._driver = TurnDriver(
            build_graph(services.with_others(models=models)).compile(),
            services.turns,
            TurnQueue(services.leases),
            services.usage.meter,
            services.memory.changes,
            services.memory.foreign_origins,
        )
        self.turns = 0

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
        for turn, asked in played:  # all at once: a visit counts its messages by their times
            await self._dated(_DATED, turn, asked=asked, answered=asked + _ANSWERS_AFTER)
        await self._dated(_CONVERSATION_DATED, turn, began=began, ended=moment - _GOES_ON_AFTER)
        await self._services.transcript.change(self._tenant_id, turn.conversation_id, title=conversation["title"])

    async def _turn(self, conversation: Mapping[str, Any], message: str, moment: datetime) -> OpenTurn:
        asked = TurnInput(
            user_id=DEMO_USER,
            session_id=f"demo-{conversation['id']}",
            message=message,
            expert=conversation.get("expert"),
            requested_kb_prefix=conversation.get("base"),
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
        """File what a message says, as the memory agent does with a model."""
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


router = APIRouter(
    route_class=JsonRoute,
    prefix="/api/v1/demo",
    include_in_schema=False,  # for the console and the command, and not for programs
    responses=documented(HTTPStatus.SERVICE_UNAVAILABLE),
)


class DemoView(BaseModel):
    """The demo that was loaded."""

    user_id: str
    turns: int = Field(description="That were played.")


@router.post("", response_model=DemoView, status_code=HTTPStatus.CREATED, responses=CONFLICT)
async def load(caller: Admin) -> Any:
    """Load a month of made-up conversations for a separate demo user, without a model. 409 if they are loaded."""
    turns = await Demo(caller.services).load(caller.tenant_id, datetime.now(UTC))
    return {"user_id": DEMO_USER, "turns": turns}


@router.delete("", **NO_CONTENT, responses=NOT_FOUND)
async def remove(caller: Admin) -> None:
    """Remove the demo with all that came with it."""
    await Demo(caller.services).remove(caller.tenant_id)
