"""Asks a past turn again, with the prompt as it was or with today's memory. Nothing is stored."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Annotated, Literal, cast
from uuid import UUID

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.context.replay import PastPrompt, PastPrompts, PastTurn
from services.conversations.turn import TurnRequest
from services.conversations.values import Id
from services.errors import InvalidInput, ModelFailed
from services.llm.chat_models import ModelUsage
from services.llm.streams.text import Said
from services.text.tokenizer import terms
from services.usage.ledger import Spender
from state.turn import EarlierMessage, TurnInput

_MOST_BEFORE = 200
"""Maximum messages of the conversation that a turn with today's memory is given."""


@dataclass(frozen=True)
class ReplayRequest:
    """How a turn is asked again."""

    __pydantic_config__ = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    memory: Literal["then", "now"] = "then"
    """The prompt as it was sent (then), or made of what memory holds today (now)."""
    model: Id | None = None
    """Model to ask; null = the expert's."""
    expert: Id | None = None
    """Expert to ask; null = the conversation's. Another one always has the memory of today."""
    without_sections: Annotated[list[str], Field(max_length=30)] = field(default_factory=list)
    """Names of sections that the prompt as it was goes without."""
    without: Annotated[list[UUID], Field(max_length=50)] = field(default_factory=list)
    """Ids of memories and messages that a prompt of today's memory goes without."""
    ask: bool = True
    """Ask a model; false = only put the prompt as it was together again."""


class ReplaySection(TypedDict):
    """A section of a prompt."""

    name: str
    tokens: int
    text: str


class ReplayError(TypedDict):
    """Why there is no answer."""

    code: str
    message: str
    retryable: bool


@dataclass(frozen=True)
class Asked:
    """A prompt, and its answer."""

    sections: Sequence[ReplaySection] | None
    """The prompt in order; null = no text of it is kept."""
    answer: str | None
    """null = no model was asked, or it did not answer."""
    usage: dict[str, int] | None
    ms: float | None
    """Milliseconds: of the model for the prompt as it was, of the whole turn with today's memory."""
    recalled: Sequence[UUID] = ()
    """Memories that the prompt showed."""
    error: ReplayError | None = None


@dataclass(frozen=True)
class Replay:
    """A past turn, and the turn asked again. Nothing of it is stored."""

    turn_id: UUID
    user_id: str
    expert: str
    message: str
    finished_at: datetime
    same_prompt: bool | None
    """Whether the prompt is byte for byte the one that was sent, by its digest; null for one of today's memory."""
    overlap: float | None
    """Share of their words that both answers have in common, 0 to 1."""
    then: Asked
    now: Asked


class Replays:
    """Asks past turns again."""

    def __init__(self, services: Services, runner: TurnRunner) -> None:
        self._services = services
        self._runner = runner
        self._prompts = PastPrompts(services.database)

    async def replay(
        self, tenant_id: UUID, turn_id: UUID, request: ReplayRequest, *, user_id: str | None = None
    ) -> Replay:
        """Ask a turn again, of any user or only when it is this one's.

        Tools are not run with the prompt as it was; with today's memory those that write are not offered.

        Raises:
            NotFound: the tenant, or the user, has no such turn.
            Conflict: the turn has not ended, or its prompt is not kept.
            InvalidInput: the request does not fit together, or names what does not exist.
            Busy: as many turns run as may.
        """
        today = request.memory == "now" or request.expert is not None
        if today and request.without_sections:
            raise InvalidInput("without_sections", 'only for the prompt as it was: with "memory": "then"')
        if not today and request.without:
            raise InvalidInput("without", 'only for a prompt of today\'s memory: with "memory": "now"')
        if today and not request.ask:
            raise InvalidInput("ask", 'a prompt of today\'s memory is made when a model is asked; leave it "true"')
        turn = await self._prompts.turn(tenant_id, turn_id, user_id=user_id)
        timings = turn.timings or {}
        sections = await self._prompts.sections_of(tenant_id, turn)
        recalled = [UUID(each) for each in turn.recalled]
        then = Asked(
            sections, turn.answer, turn.usage, timings.get("total_ms" if today else "generate_ms"), recalled
        )
        same = None
        if today:
            now = await self._with_memory_of_today(tenant_id, turn, request)
        else:
            prompt = await self._prompts.prompt_of(tenant_id, turn, without=request.without_sections)
            now, same = await self._with_prompt(tenant_id, turn, prompt, request), prompt.same
        overlap = overlap_of(turn.answer, now.answer)
        about = turn.turn_id, turn.user_id, turn.expert, turn.question, turn.finished_at
        return Replay(*about, same, overlap, then, now)

    async def _with_prompt(
        self, tenant_id: UUID, turn: PastTurn, prompt: PastPrompt, request: ReplayRequest
    ) -> Asked:
        if not request.ask:
            return Asked(prompt.sections, None, None, None)
        begun = time.perf_counter()
        said = Said()
        try:
            with self._services.usage.meter.spending(Spender(tenant_id, "replay")):
                reply = await self._services.models.answer(
                    prompt.messages, on_text=said, model=request.model or turn.model
                )
        except ModelFailed as failed:
            error = ReplayError(code=failed.failure, message=failed.message, retryable=failed.can_retry)
            return Asked(prompt.sections, None, None, None, error=error)
        ms = round((time.perf_counter() - begun) * 1000, 1)
        return Asked(prompt.sections, said.text, asdict(ModelUsage.of(reply)), ms)

    async def _with_memory_of_today(self, tenant_id: UUID, turn: PastTurn, request: ReplayRequest) -> Asked:
        """Run a temporary turn with the same message after the same messages."""
        before = await self._prompts.said_before(tenant_id, turn, limit=_MOST_BEFORE)
        own = [turn.question_id, *([turn.answer_id] if turn.answer_id else [])]
        known = [*request.without, *own, *(said.id for said in before)]
        asked = TurnInput(
            user_id=turn.user_id,
            session_id=f"replay-{turn.turn_id}",
            message=turn.question,
            images=turn.message.images,
            expert=request.expert or turn.expert,
            space=turn.space,
            earlier=[EarlierMessage(role=said.role, content=said.content, images=said.images) for said in before],
            without=[str(each) for each in known],
        )
        turn_request = TurnRequest(tenant_id, asked, stored=False, reads_memory=True, model=request.model)
        turn_id = await self._runner.start(turn_request)
        run = self._runner.unstored(tenant_id, turn_id)
        if run is None:
            raise AssertionError("a temporary turn is known to its process")
        async with aclosing(self._runner.follow(tenant_id, turn_id)) as events:
            async for batch in events:
                last = batch[-1]
        written = run.written
        sections, usage = written.get("prompt_sections"), cast("dict[str, int] | None", written.get("usage"))
        if last.status == "error":
            about = last.content
            error = ReplayError(code=about["code"], message=about["message"], retryable=about["retryable"])
            return Asked(sections, None, usage, None, error=error)
        recalled = [UUID(each) for each in written["context_report"].get("recall", {}).get("shown", [])]
        return Asked(sections, last.content["answer"], usage, written["timings"]["total_ms"], recalled)


def overlap_of(one: str | None, other: str | None) -> float | None:
    """Return the share of words that two texts have in common (Dice), 0 to 1; None if one is missing."""
    if one is None or other is None:
        return None
    counts = Counter(terms(one)), Counter(terms(other))
    total = counts[0].total() + counts[1].total()
    return round(2 * (counts[0] & counts[1]).total() / total, 3) if total else float(one.strip() == other.strip())
