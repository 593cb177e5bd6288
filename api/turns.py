"""Turns: their state, their events, cancelling, replaying, and feedback."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from fastapi.responses import StreamingResponse

from api.access import Chatter, MemoryReader, RunnerOf
from api.paging import NO_CONTENT, Paged, json_router
from api.problems import documented
from api.schemas import Page, answered
from api.streams import EventStream, LastSeen, sse_events
from api.turn_schemas import ApprovalRequest, ExplanationView, FeedbackRequest
from graph.turns.replay import Asked, Replay, Replays
from graph.turns.requests import ReplayRequest
from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.conversations.feedback import Feedback
from services.conversations.turn import StoredTurn, TurnOfAny, TurnStatus
from services.conversations.values import Id
from services.errors import Conflict
from services.identity.caller import Caller

answered(Asked)
_Replayed = answered(Replay)

router = json_router("/api/v1/turns", "turns", HTTPStatus.NOT_FOUND)


@router.get("", response_model=Page[TurnOfAny])
async def turns(
    caller: MemoryReader,
    page: Paged,
    user_id: Id | None = None,
    status: TurnStatus | None = None,
) -> Any:
    """Turns of the tenant or of one user, newest first, in every conversation."""
    if user_id is not None:
        caller.act_for(user_id)
    user = user_id or caller.user_id
    return page.of(
        await caller.services.turns.all(caller.tenant_id, user=user, status=status, **vars(page)), "accepted_at"
    )


@router.get("/{turn_id}", response_model=answered(StoredTurn))
async def turn(turn_id: UUID, caller: Chatter) -> Any:
    """A turn's current state."""
    return await caller.services.turns.get(caller.tenant_id, turn_id, user_id=caller.user_id)


@router.get("/{turn_id}/why", response_model=ExplanationView)
async def why(turn_id: UUID, caller: MemoryReader) -> Any:
    """Why the answer is as it is: the prompt by section, what was recalled and why it was shown or not, where each
    of it comes from, and times.

    Texts are those that memory has now: what has been forgotten since is not shown.
    """
    explained = await caller.services.explanations.of_turn(caller.tenant_id, turn_id, user_id=caller.user_id)
    lineage = await caller.services.prompt_lineage.of_turn(caller.tenant_id, explained)
    return {**explained, "lineage": lineage}


@router.post("/{turn_id}/replay", response_model=_Replayed, responses=documented(HTTPStatus.CONFLICT))
async def replay(turn_id: UUID, body: ReplayRequest, runner: RunnerOf, caller: MemoryReader) -> Any:
    """Ask a past turn again: with the prompt as it was, or with today's memory, another expert or model.

    Nothing is stored. The prompt as it was is checked against its digest; it is no longer kept once memory has
    lost something that it may show.
    """
    caller.require("chat")
    return await Replays(caller.services, runner).replay(caller.tenant_id, turn_id, body, user_id=caller.user_id)


@router.get(
    "/{turn_id}/stream",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "The turn's events."}},
)
async def turn_stream(
    turn_id: UUID,
    caller: Chatter,
    runner: RunnerOf,
    last_seen: LastSeen,
) -> EventStream:
    """The events that a reader has missed, and the rest as they come; any process of the service can answer.

    If events have expired or were lost, one `done` or `error` follows, with the whole `answer`.
    """
    await _stored(caller.services, runner, caller, turn_id)
    return EventStream(sse_events(runner.follow(caller.tenant_id, turn_id, last_seen)))


@router.post("/{turn_id}/cancel", response_model=answered(StoredTurn))
async def cancel(turn_id: UUID, runner: RunnerOf, caller: Chatter) -> Any:
    """Stop a running or waiting turn; its answer so far is kept.

    An ended turn stays as it is. Only the process that runs a temporary turn knows it.
    """
    await _stored(caller.services, runner, caller, turn_id)
    return await runner.stop(caller.tenant_id, turn_id)


@router.post("/{turn_id}/approve", response_model=ApprovalRequest, responses=documented(HTTPStatus.CONFLICT))
async def approve(turn_id: UUID, body: ApprovalRequest, runner: RunnerOf, caller: Chatter) -> Any:
    """Say whether a tool may be called that asked for it by an event `approval`; the first answer counts.

    409 if the turn has ended.
    """
    stored = await _stored(caller.services, runner, caller, turn_id)
    if stored is not None and stored.finished_at is not None:
        raise Conflict("The turn has ended.")
    await caller.services.approvals.answer(caller.tenant_id, turn_id, body.approval_id, approved=body.approved)
    return body


@router.post("/{turn_id}/feedback", response_model=answered(Feedback), responses=documented(HTTPStatus.CONFLICT))
async def give_feedback(turn_id: UUID, body: FeedbackRequest, caller: Chatter) -> Any:
    """Rate a turn's answer, replacing earlier feedback; 409 while the turn has not ended."""
    return await caller.services.feedback.put(
        caller.tenant_id,
        turn_id,
        body.rating,
        comment=body.comment,
        tags=body.tags,
        user=caller.user_id,
    )


@router.delete("/{turn_id}/feedback", **NO_CONTENT)
async def withdraw_feedback(turn_id: UUID, caller: Chatter) -> None:
    """Withdraw the feedback on a turn."""
    await caller.services.feedback.delete(caller.tenant_id, turn_id, user=caller.user_id)


async def _stored(services: Services, runner: TurnRunner, caller: Caller, turn_id: UUID) -> StoredTurn | None:
    """Return a turn of the caller's as it is stored; None = it is a temporary one, which this process runs."""
    if runner.unstored(caller.tenant_id, turn_id, user_id=caller.user_id) is not None:
        return None
    return await services.turns.get(caller.tenant_id, turn_id, user_id=caller.user_id)
