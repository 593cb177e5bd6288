"""Turns: their state, their events, cancelling, and feedback."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from api.access import Chatter, MemoryReader, ServedCaller
from api.paging import NO_CONTENT, Paged, json_router
from api.problems import CONFLICT
from api.schemas import Answer, Page, StrictModel, answered
from api.streams import EventStream, LastSeen, sse_events
from services.conversations.feedback import MAX_COMMENT_CHARACTERS, MAX_TAGS, Feedback, Rating
from services.conversations.turn import StoredTurn, TurnOfAny, TurnStatus
from services.conversations.values import Id, not_blank
from services.errors import Conflict
from services.memory.episodes.episode import Source
from services.memory.lineage.prompt import ShownItem
from services.validation import no_nul
from state.memory import MemoryChange
from state.prompt import Source as PassageSource

Comment = Annotated[
    str, StringConstraints(max_length=MAX_COMMENT_CHARACTERS), AfterValidator(no_nul), AfterValidator(not_blank)
]
Tag = Annotated[str, StringConstraints(max_length=64), AfterValidator(no_nul), AfterValidator(not_blank)]


class ApprovalRequest(StrictModel):
    """A user's answer to the question whether a tool may be called."""

    approval_id: UUID = Field(description="Of the event `approval`.")
    approved: bool


class FeedbackRequest(StrictModel):
    """A user's opinion of an answer."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"rating": "up"}]})

    rating: Rating
    comment: Comment | None = Field(None, description=f"1 to {MAX_COMMENT_CHARACTERS} characters.")
    tags: list[Tag] = Field(
        default_factory=list, max_length=MAX_TAGS, description="Words of your own, each of 1 to 64 characters."
    )


class SectionView(BaseModel):
    """A section of the prompt."""

    name: str
    tokens: int = Field(description="Estimated.")
    text: str | None = Field(description="The text as the model read it; null if there is none, or none is kept.")


class RecalledView(BaseModel):
    """A unit that recall found: a message, or a written memory."""

    unit_id: UUID
    episode_id: UUID
    text: str | None = Field(description="null = memory no longer has it.")
    episode_type: str | None
    created_at: datetime | None
    conversation_id: UUID | None
    expert: str | None
    shown: bool = Field(description="Whether the prompt showed it.")
    reason: str | None = Field(description="Why it was left out.")
    score: float
    relevance: float
    likelihood: float = Field(description="Probability that it is relevant to the message, 0 to 1.")
    cosine: float | None = Field(description="Similarity in meaning; null = not known.")
    ranks: dict[str, int] = Field(description="Its position, from 1, in each list that found it.")
    sources: list[Source] = Field(description="The messages that it comes from.")


class RecallView(BaseModel):
    """Queries of earlier conversations, and what they found."""

    queries: list[str | dict[str, Any]]  # turns answered by earlier versions name the kind of each query
    found: int
    ms: float | None
    items: list[RecalledView] = Field(description="Most likely first.")


class ShownSource(PassageSource):
    """A passage that the prompt showed."""

    text: str | None
    """Null = the document is no longer there."""


class NodeTimeView(BaseModel):
    """Total running time of a node."""

    name: str
    ms: float


class TurnOperationView(BaseModel):
    """A memory operation that the turn caused."""

    id: UUID
    type: str
    field: str | None
    old_value: Any
    new_value: Any
    query: str | None
    at: datetime
    undone_at: datetime | None


class ExplanationView(Answer):
    """Why the answer of a turn is as it is."""

    turn_id: UUID
    conversation_id: UUID
    user_id: str
    expert: str
    status: TurnStatus
    route: dict[str, Any] | None
    usage: dict[str, int] | None
    degraded: list[str]
    budget: int = Field(description="Tokens allowed for the prompt, not counting the message; 0 = not known.")
    strategy: str | None
    epoch: int | None
    epoch_reason: str | None
    prefix: dict[str, float] = Field(description="`tokens` and `share` equal to the previous prompt.")
    features: list[str] = Field(description="Features that were on in the turn.")
    texts: Literal["kept", "withdrawn", "none"] = Field(
        description="`withdrawn`: something the prompt may show has since been removed from memory."
    )
    sections: list[SectionView]
    dropped: list[dict[str, Any]]
    rounds: list[dict[str, Any]] = Field(
        description="Parts of the answer that ended in calls of the client's tools: the text, the calls, the "
        "service's own tools that ran, and the names and sizes of the results."
    )
    recall: RecallView
    lineage: list[ShownItem] = Field(
        description="Where what the prompt showed comes from, as memory has it now: for each section its derived "
        "items, with their origin (the least trusted one of the words in them), maker and sources."
    )
    sources: list[ShownSource]
    nodes: list[NodeTimeView]
    first_token_ms: float | None
    total_ms: float | None
    memory_changes: list[MemoryChange]
    operations: list[TurnOperationView]
    finished_at: datetime | None


router = json_router("/api/v1/turns", "turns", HTTPStatus.NOT_FOUND)


@router.get("", response_model=Page[TurnOfAny])
async def turns(
    caller: MemoryReader, page: Paged, user_id: Id | None = None, status: TurnStatus | None = None
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


@router.get(
    "/{turn_id}/stream",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "The turn's events."}},
)
async def turn_stream(turn_id: UUID, caller: Chatter, last_seen: LastSeen) -> EventStream:
    """The events that a reader has missed, and the rest as they come; any process of the service can answer.

    If events have expired or were lost, one `done` or `error` follows, with the whole `answer`.
    """
    await _stored(caller, turn_id)
    return EventStream(sse_events(caller.runner.follow(caller.tenant_id, turn_id, last_seen)))


@router.post("/{turn_id}/cancel", response_model=answered(StoredTurn))
async def cancel(turn_id: UUID, caller: Chatter) -> Any:
    """Stop a running or waiting turn; its answer so far is kept.

    An ended turn stays as it is. Only the process that runs a temporary turn knows it.
    """
    await _stored(caller, turn_id)
    return await caller.runner.stop(caller.tenant_id, turn_id)


@router.post("/{turn_id}/approve", response_model=ApprovalRequest, responses=CONFLICT)
async def approve(turn_id: UUID, body: ApprovalRequest, caller: Chatter) -> Any:
    """Say whether a tool may be called that asked for it by an event `approval`; the first answer counts.

    409 if the turn has ended.
    """
    stored = await _stored(caller, turn_id)
    if stored is not None and stored.finished_at is not None:
        raise Conflict("The turn has ended.")
    await caller.services.approvals.answer(caller.tenant_id, turn_id, body.approval_id, approved=body.approved)
    return body


@router.post("/{turn_id}/feedback", response_model=answered(Feedback), responses=CONFLICT)
async def give_feedback(turn_id: UUID, body: FeedbackRequest, caller: Chatter) -> Any:
    """Rate a turn's answer, replacing earlier feedback; 409 while the turn has not ended."""
    return await caller.services.feedback.put(
        caller.tenant_id, turn_id, body.rating, comment=body.comment, tags=body.tags, user=caller.user_id
    )


@router.delete("/{turn_id}/feedback", **NO_CONTENT)
async def withdraw_feedback(turn_id: UUID, caller: Chatter) -> None:
    """Withdraw the feedback on a turn."""
    await caller.services.feedback.delete(caller.tenant_id, turn_id, user=caller.user_id)


async def _stored(caller: ServedCaller, turn_id: UUID) -> StoredTurn | None:
    """Return a stored turn of the caller; None = it is a temporary turn, which this process runs."""
    if caller.runner.unstored(caller.tenant_id, turn_id, user_id=caller.user_id) is not None:
        return None
    return await caller.services.turns.get(caller.tenant_id, turn_id, user_id=caller.user_id)
