"""Ask a past turn again: with the prompt as it was, or with what memory holds today. Nothing is stored."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from graph.turns.requests import ReplayRequest, TurnRequest
from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.context.replay import PastPrompt, PastPrompts, PastTurn
from services.errors import InvalidInput, ModelFailed
from services.llm.chat_models import ModelUsage
from services.llm.streams.pieces import Said
from services.text.tokenizer import terms
from services.usage.meter import Spender
from state.conversation import EarlierMessage, TurnInput
from state.prompt import PromptSection

_MOST_BEFORE = 200
"""Messages of the conversation that a turn with today's memory is given at most."""


@dataclass(frozen=True)
class Asked:
    """A prompt, and what came of it."""

    sections: Sequence[PromptSection] | None
    """None = no text is kept."""
    answer: str | None
    """None = no model was asked, or it did not answer."""
    usage: Any
    ms: float | None
    """Milliseconds that the model took for the prompt as it was; that the whole turn took with today's memory."""
    recalled: Sequence[str] = ()
    """Ids of the episodes that the prompt showed."""
    error: Mapping[str, Any] | None = None
    """Why there is no answer: `code`, `message` and `retryable`."""


@dataclass(frozen=True)
class Replay:
    """A turn as it was, and as it is when it is asked again."""

    turn: PastTurn
    same_prompt: bool | None
    """Whether the prompt that was put together again is byte for byte the one that was sent; None = it is not."""
    then: Asked
    now: Asked
    overlap: float | None
    """Share of the words of both answers that they have in common, 0 to 1; None = there are no two answers."""


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
        then = Asked(
            sections, turn.answer, turn.usage, timings.get("total_ms" if today else "generate_ms"), turn.recalled
        )
        same = None
        if today:
            now = await self._with_memory_of_today(tenant_id, turn, request)
        else:
            prompt = await self._prompts.prompt_of(tenant_id, turn, without=request.without_sections)
            now, same = await self._with_prompt(tenant_id, turn, prompt, request), prompt.same
        return Replay(turn, same, then, now, overlap_of(turn.answer, now.answer))

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
            error = {"code": failed.failure, "message": failed.message, "retryable": failed.can_retry}
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
        sections = written.get("prompt_sections")
        if last.status == "error":
            error = {name: last.content[name] for name in ("code", "message", "retryable")}
            return Asked(sections, None, written.get("usage"), None, error=error)
        return Asked(
            sections,
            last.content["answer"],
            written.get("usage"),
            written["timings"]["total_ms"],
            written["context_report"].get("recall", {}).get("shown", []),
        )


def overlap_of(one: str | None, other: str | None) -> float | None:
    """The share of the words of both texts that they have in common (Dice), 0 to 1; None where one is missing."""
    if one is None or other is None:
        return None
    counts = Counter(terms(one)), Counter(terms(other))
    total = counts[0].total() + counts[1].total()
    return round(2 * (counts[0] & counts[1]).total() / total, 3) if total else float(one.strip() == other.strip())
