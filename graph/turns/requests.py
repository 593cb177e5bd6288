"""Turn a caller's request into the state and the context with which the graph begins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from time import perf_counter
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from pydantic import ConfigDict, Field

from services.context.request_budget import within
from services.conversations.leases import AdoptedTurn
from services.conversations.turn import LEASE, ConflictPolicy, NewTurn, OpenTurn
from services.conversations.values import Id
from services.errors import InvalidInput
from services.llm.token_estimates import count_tokens
from services.platform.settings import Settings
from state.budget import LONGEST_S
from state.context import TurnContext
from state.conversation import ConversationState, TurnInput

LONGEST_TURN_S = LONGEST_S

_STORED_ELSEWHERE = frozenset({"user_id", "session_id", "message", "images", "earlier", "space"})
_ECHO = "echo"


@dataclass(frozen=True)
class TurnRequest:
    """A validated request: the graph's input, and whose it is."""

    tenant_id: UUID
    input: TurnInput
    idempotency_key: str | None = None
    on_conflict: ConflictPolicy = "queue"
    must_begin: bool = False
    """Whether the turn may only start as the first of its conversation."""
    lease: timedelta = LEASE
    external_id: str | None = None
    """The client's id for the message."""
    stored: bool = True
    """Whether the turn is stored and remembered; otherwise it is temporary."""
    of_user: bool = True
    """Whether the caller names a user, whose memory a temporary turn may read."""
    reads_memory: bool | None = None
    """Whether a temporary turn reads memory; None = as the service is configured."""
    model: str | None = None
    """The model of a temporary turn; None = the expert's."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the client's request that are stored with the turn, for responses that repeat them."""


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


def with_budget(request: TurnRequest, settings: Settings) -> TurnRequest:
    """Return the request with the limits that its turn has: its own or the usual ones, and none above the highest.

    Raises:
        InvalidInput: its message alone is longer than the tokens that it may use.
    """
    limits = within(request.input.get("budget", {}), settings.request_budget, settings.request_budget_max)
    if not limits:
        return request
    message = request.input["message"]
    if limits.get("tokens", len(message)) < len(message) and (needed := count_tokens(message)) > limits["tokens"]:
        raise InvalidInput("budget.tokens", f"must be more than {needed}, the tokens of the message alone")
    return replace(request, input={**request.input, "budget": limits})


def new_turn(request: TurnRequest) -> NewTurn:
    """Return the request in the form in which it is stored."""
    asked = request.input
    rest = {name: value for name, value in asked.items() if name not in _STORED_ELSEWHERE}
    if request.echo:
        rest[_ECHO] = dict(request.echo)
    return NewTurn(
        tenant_id=request.tenant_id,
        external_user_id=asked["user_id"],
        session_key=asked["session_id"],
        content=asked["message"],
        images=asked.get("images", ()),
        expert=asked.get("expert"),
        space=asked.get("space"),
        kb_prefix=asked.get("requested_kb_prefix"),
        timezone=asked.get("timezone"),
        locale=asked.get("locale"),
        idempotency_key=request.idempotency_key,
        external_id=request.external_id,
        on_conflict=request.on_conflict,
        must_begin=request.must_begin,
        request=rest,
        lease=request.lease,
    )


def adopted_request(adopted: AdoptedTurn) -> TurnInput:
    """Return the request of a turn that waited in another process."""
    asked = TurnInput(
        user_id=adopted.external_user_id,
        session_id=adopted.session_key,
        message=adopted.content,
        images=adopted.images,
    )
    rest = {name: value for name, value in adopted.request.items() if name != _ECHO}
    asked.update(cast("TurnInput", rest))
    return asked


def initial_state(
    turn: OpenTurn, request: TurnInput, now: datetime, degraded: Sequence[str] = ()
) -> ConversationState:
    """Return the state with which a turn begins; `degraded` = features unavailable from the beginning."""
    opened = ConversationState(
        user_message_id=str(turn.user_message_id),
        answer_message_id=str(turn.answer_message_id),
        system_prompt=turn.system_prompt,
        model=turn.model,
        context_policy=turn.policy,
        features_off=list(turn.parts_off),
        begins=turn.begins,
        asks=turn.asks,
        reflects=turn.reflects,
        unstored=not turn.stored,
        remembers=turn.remembers,
        has_knowledge=turn.has_knowledge,
        core_memory_generation=turn.core_memory_generation,
        memory_generation=turn.memory_generation,
        recall_limits=turn.recall_limits,
        now=now,
        begun=perf_counter(),
    )
    if degraded:
        opened["degraded"] = list(degraded)
    # The opened turn takes precedence over whatever a caller's input names.
    return ConversationState({**request, **opened})


def turn_context(turn: OpenTurn, *, debug: bool, can_ask: bool = False) -> TurnContext:
    """Return the identity and limits of the turn."""
    return TurnContext(
        tenant_id=str(turn.tenant_id),
        user_id=str(turn.user_id),
        conversation_id=str(turn.conversation_id),
        expert_id=str(turn.expert_id),
        expert=turn.expert,
        space_id=str(turn.space_id or ""),
        temporary=not turn.stored,
        user_message_id=str(turn.user_message_id),
        turn_id=str(turn.turn_id),
        locale=turn.locale or "",
        timezone=turn.timezone,
        can_ask=can_ask,
        debug=debug,
    )
