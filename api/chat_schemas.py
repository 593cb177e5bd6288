"""Schemas of a chat request and its answer."""

from typing import Annotated, Any, Literal, Self, cast
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from api.schemas import StrictModel
from services.conversations import values
from services.conversations.speakers import MOST_CHARACTERS
from services.validation import no_nul
from state.budget import LONGEST_S, MOST_CALLS, MOST_TOKENS, BudgetReport, RequestBudget
from state.memory import MemoryChange
from state.prompt import Finish, Source
from state.turn import AgentType, Compose, EarlierMessage, TurnInput

MAX_EARLIER = 200
MAX_ANSWER_CHARACTERS = 1_000_000

IdempotencyKey = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,255}$")]
"""1 to 255 visible ASCII characters."""
ExternalId = Annotated[str, StringConstraints(min_length=1, max_length=255), AfterValidator(no_nul)]
"""A program's own id for a message."""
OnConflict = Literal["queue", "reject", "interrupt"]
OnDisconnect = Literal["continue", "cancel"]


class EarlierMessageRequest(StrictModel):
    """A message that was said before in a temporary conversation."""

    role: Literal["user", "assistant"]
    content: values.Text
    images: values.Images = Field(default_factory=list)
    speaker: str | None = Field(None, min_length=1, max_length=MOST_CHARACTERS, description="As of the message.")


class BudgetRequest(StrictModel):
    """Limits of one turn; an absent field is no limit."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model_calls": 2, "tokens": 4000}]})

    model_calls: int | None = Field(None, ge=1, le=MOST_CALLS, description="Calls of the model that answers.")
    seconds: float | None = Field(
        None, gt=0, le=LONGEST_S, description="From the turn's beginning, once earlier turns have ended."
    )
    tokens: int | None = Field(
        None, ge=1, le=MOST_TOKENS, description="That the model reads and writes in all calls of the turn."
    )

    def as_limits(self) -> RequestBudget:
        """Return the given limits."""
        named = self.model_dump(exclude_none=True)
        return RequestBudget(**named)  # type: ignore[typeddict-item, no-any-return]


class ChatRequest(StrictModel):
    """One message of a user in a conversation."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"user_id": "u-1", "session_id": "s-1", "message": "推荐一部诺兰的电影"}]}
    )

    user_id: values.Id = Field(description="The caller's own name for the user.")
    message: values.Text = Field(description="1 to ANAMNESIS_MESSAGE_CHARACTERS (32,000) characters.")
    speaker: str | None = Field(
        None,
        min_length=1,
        max_length=MOST_CHARACTERS,
        description="Name of another participant who says it: it changes nothing that is remembered of the user. "
        "Null, or the user's id or display name = the user.",
    )
    session_id: values.Id = Field(description="The caller's name for the conversation.")
    kb_prefix: values.Id | None = Field(None, description="Knowledge base to answer from.")
    agent_type: AgentType = "hybrid_agent"
    debug: bool = Field(False, description="Also send what each node did.")
    approvals: bool = Field(
        False, description="Ask in the stream, by an event `approval`, before a tool changes something elsewhere."
    )
    max_context_tokens: int | None = Field(
        None, ge=500, le=1_000_000, description="A smaller budget for this turn's prompt, without its message."
    )
    expert: values.Id | None = Field(None, description="Expert of a new conversation.")
    space: values.SpaceName | None = Field(
        None,
        description="Space (a project, a folder) of a new conversation, 1 to "
        f"{values.MAX_SPACE_CHARACTERS} characters: what is said stays in it. A conversation that has begun keeps "
        "its space.",
    )
    temporary: bool = Field(
        False, description="Keep nothing of it: no message, no memory, no event. Memory may be read."
    )
    earlier: list[EarlierMessageRequest] = Field(
        default_factory=list,
        max_length=MAX_EARLIER,
        description="What was said before, oldest first; only of a temporary conversation, of which the service "
        "keeps nothing.",
    )
    images: values.Images = Field(
        default_factory=list,
        description=f"http(s) addresses or data URLs; at most {values.MAX_IMAGES_BYTES} bytes of data in all.",
    )
    timezone: values.TimeZone | None = Field(
        None, description="IANA name or offset; null = the user's stored one."
    )
    locale: values.Locale | None = Field(None, description="BCP 47 tag such as zh-CN.")
    compose: Compose | None = Field(
        None,
        description="When several tools run at once for the message itself: answer after all of them (single), or "
        "begin with the first result (progressive); null = as the service is configured.",
    )
    filler: bool | None = Field(
        None, description="Send the event filler when such tools start; null = as the service is configured."
    )
    budget: BudgetRequest | None = Field(
        None, description="What this turn may use; null = as the service is configured."
    )
    on_conflict: OnConflict = Field(
        "queue",
        description="While a turn of the conversation is in progress: wait for it (up to 5 do), be refused "
        "with 409, or end it as partial.",
    )
    on_disconnect: OnDisconnect = Field(
        "continue", description="When the client disconnects: let the turn continue, or cancel it."
    )
    replaces: UUID | None = Field(
        None,
        description="A turn of the conversation that the message replaces: it and what follows it become a "
        "branch. The same message regenerates the answer.",
    )
    answer: str | None = Field(
        None,
        max_length=MAX_ANSWER_CHARACTERS,
        description="What another agent has answered: the exchange is taken in as any turn is, and no model is "
        "asked. Empty = it said nothing. Null = the service answers.",
    )
    external_id: ExternalId | None = Field(None, description="The caller's own id for the message.")
    answer_external_id: ExternalId | None = Field(None, description="The caller's own id for the answer.")
    answer_from: Literal["document", "tool"] | None = Field(
        None,
        description="Words of others that this agent read before it answered: its answer counts as theirs. "
        "Null = none.",
    )
    operations: list[UUID] = Field(
        default_factory=list,
        max_length=50,
        description="Ids of the operations by which this agent has changed memory for the message: plain forms "
        "of it are not carried out once more.",
    )
    without: list[UUID] = Field(
        default_factory=list,
        max_length=50,
        description="Ids of memories and messages to leave out of this answer, and with each memory the "
        "messages it was made from. Memory is not changed.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.temporary and self.replaces is not None:
            raise PydanticCustomError(
                "temporary", "replaces: a temporary conversation has no stored turns to replace"
            )
        if self.earlier and not self.temporary:
            raise PydanticCustomError(
                "temporary", "earlier: only for a temporary conversation; others are stored and read from there"
            )
        if self.answer is not None and self.temporary:
            raise PydanticCustomError("temporary", "answer: nothing of a temporary conversation is kept")
        if self.answer is None and (self.answer_from or self.operations):
            raise PydanticCustomError("answer", "answer_from and operations say something about an answer")
        return self

    def as_input(self) -> TurnInput:
        """Return the input of the graph."""
        shown = cast("TurnInput", {name: getattr(self, name) for name in _INPUT})
        shown["requested_kb_prefix"] = self.kb_prefix
        if self.answer is not None:
            shown["answer"] = self.answer
            shown["answer_from"] = self.answer_from
            shown["operations"] = [str(each) for each in self.operations]
        if self.answer_external_id is not None:
            shown["answer_external_id"] = self.answer_external_id
        if self.budget is not None and (limits := self.budget.as_limits()):
            shown["budget"] = limits
        if self.earlier:
            shown["earlier"] = [
                EarlierMessage(
                    role=each.role, content=each.content, images=each.images, speaker=each.speaker or ""
                )
                for each in self.earlier
            ]
        return shown


_OTHERWISE = frozenset(
    {"answer", "answer_external_id", "answer_from", "budget", "earlier", "operations", "without"}
)
_INPUT = tuple(each for each in ChatRequest.model_fields if each in {*TurnInput.__annotations__} - _OTHERWISE)
"""Fields that the graph takes as they are."""


class SocketRequest(ChatRequest):
    """A chat request over a WebSocket."""

    idempotency_key: IdempotencyKey | None = Field(
        None, description="The same key in the same conversation is the same turn."
    )
    request_id: values.Id | None = Field(None, description="Returned in every frame that answers this one.")


class ChatAnswer(BaseModel):
    """A whole answer: the content of the event `done`."""

    answer: str
    conversation_id: UUID
    turn_id: UUID
    message_id: UUID
    usage: dict[str, int]
    timings: dict[str, float]
    degraded: list[str]
    sources: list[Source]
    finish: Finish = Field("stop", description="Why the answer ends; length = it was as long as it may be.")
    memory_changes: list[MemoryChange] = Field(default_factory=list)
    request_budget: BudgetReport | None = Field(None, description="Null where the turn has no budget.")
    trace_id: str | None = Field(None, description="Of the turn's trace; null while tracing is off.")
    context_report: dict[str, Any] | None = None
