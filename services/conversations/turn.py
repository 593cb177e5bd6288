"""Turns as values: requested, opened, ended and stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from services.conversations.feedback import Feedback
from services.experiments.assignment import Assignment
from state.memory import ForeignOrigin, MemoryChange, PlannedChange
from state.prompt import ContextPolicy, Epoch, Feature, RecallLimits, Source
from state.turn import OpenTurn, TurnInput

TurnStatus = Literal["waiting", "running", "paused", "completed", "partial", "failed", "cancelled"]
"""Status of a turn: `waiting` until earlier turns of its conversation have ended, `paused` until a client
brings results of its tools. The last four are final: a complete answer; a partial answer; none; stopped by its
caller, with the answer so far."""

ConflictPolicy = Literal["queue", "reject", "interrupt"]
"""Treatment of a message whose conversation has an unfinished turn: it waits; it is refused; or it ends the
running turn as partial and then runs."""

StopReason = Literal["cancelled", "partial", "forgotten", "taken_over"]
"""How a stopped turn ends: `cancelled` by its caller, `partial` by a newer message, or `taken_over`, which ends
it only in this process, because this process was presumed dead and another one runs the turn or has ended it."""

_LEAST_BUDGET = 500
LEASE = timedelta(seconds=15)
"""Time without renewal after which the process of an unfinished turn is presumed dead."""

TURN_IMPORTANCE = 0.4
"""Importance of the episode that a completed turn becomes, 0 to 1."""

WITHOUT_WRITING: tuple[Feature, ...] = ("memory_filing",)
"""Features switched off in a temporary turn: those that store something about a user."""

WITHOUT_MEMORY: tuple[Feature, ...] = ("core_memory", "persona_card", "recall", "days", *WITHOUT_WRITING)
"""Features also switched off if it may not read memory either."""

MOST_WAITING = 5
"""Maximum number of waiting turns in one conversation."""


@dataclass(frozen=True)
class TurnRequest:
    """A validated request. Its time zone and locale are for this turn; they are stored for a new user."""

    tenant_id: UUID
    input: TurnInput
    idempotency_key: str | None = None
    """Key that stands for one turn within its conversation; None = none."""
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
    echo: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the client's request that are stored with the turn, for responses that repeat them."""


def with_variants(turn: OpenTurn, assignment: Assignment) -> OpenTurn:
    """Return the turn with the settings of its variants applied."""
    settings = assignment.settings
    policy = ContextPolicy(**turn.policy)
    policy["budget"] = settings.get("context_budget_tokens", policy["budget"])
    limits = RecallLimits(items=settings.get("recall_items"), tokens=settings.get("recall_tokens"))
    return replace(
        turn,
        experiments=assignment.names,
        recall_limits=limits,
        policy=policy,
        model=settings.get("model", turn.model),
        system_prompt=settings.get("system_prompt", turn.system_prompt),
        parts_off=list(dict.fromkeys([*turn.parts_off, *settings.get("parts_off", ())])),
    )


def saving(turn: OpenTurn, usual_budget: int) -> OpenTurn:
    """Return a cheaper turn: half the context, and no filing after it."""
    policy = ContextPolicy(**turn.policy)
    policy["budget"] = max((policy["budget"] or usual_budget) // 2, _LEAST_BUDGET)
    return replace(turn, policy=policy, parts_off=list(dict.fromkeys([*turn.parts_off, "memory_filing"])))


@dataclass(frozen=True)
class TurnOutcome:
    """How a turn ended. `answer` is what was produced, complete or not."""

    status: TurnStatus
    answer: str = ""
    route_decision: Any = None
    usage: Any = None
    timings: Any = None
    degraded: Sequence[str] = ()
    context_report: Any = None
    prompt: Any = None
    """Sections sent to the model, with their texts."""
    error: Any = None
    epoch: Epoch | None = None
    """Stored with a complete answer."""
    recalled: Sequence[str] = ()
    """Ids of the episodes that its prompt showed."""
    origin: ForeignOrigin | None = None
    """The least trusted foreign words that the model read in the turn itself; None = none."""
    reads_days: bool = False
    """Whether the model read records of the user's days, or searched in what was said."""
    reads_note: bool = False
    """Whether the model read the expert's last private note."""
    episode: bool = False
    """Whether it becomes an episode if it completes."""
    summary_due: bool = False
    """Whether enough was said since the newest summary to make another one."""
    context_filled: float = 0.0
    """Share of its budget that its prompt took where topics can be archived; otherwise 0."""
    visits_to_summarise: Sequence[UUID] = ()
    """Visits that it described without a summary of their day; these summaries are made in the background."""
    memory: Sequence[PlannedChange] = ()
    """Changes of memory that it makes."""
    made: Sequence[MemoryChange] = ()
    """Changes of memory that its tools have made."""
    files: bool | None = None
    """Whether what its user said is filed now, if a model is configured; None = together with what is said
    next."""
    asked: UUID | None = None
    """The change of memory that it asked the user about."""


@dataclass(frozen=True, kw_only=True)
class TurnState:
    """State of a turn so far."""

    id: UUID
    status: TurnStatus
    route_decision: Mapping[str, Any] | None
    usage: Mapping[str, int] | None
    timings: Mapping[str, float] | None
    degraded: list[str]
    error: dict[str, Any] | None
    started_at: datetime
    finished_at: datetime | None
    feedback: Feedback | None = None
    """The user's opinion of the answer."""

    @property
    def ended(self) -> bool:
        """Whether the turn has its outcome."""
        return self.status not in {"waiting", "running", "paused"}


@dataclass(frozen=True, kw_only=True)
class StoredTurn(TurnState):
    """A turn: one user message and everything that answers it."""

    conversation_id: UUID
    user_message_id: UUID
    assistant_message_id: UUID | None
    answer: str | None
    context_report: Mapping[str, Any] | None
    memory_changes: list[MemoryChange] = field(default_factory=list)
    experiments: dict[str, str] | None = None
    """Names of its variants, by the names of their experiments."""
    echo: dict[str, Any] | None = None
    """Fields of the client's request that responses repeat."""


@dataclass(frozen=True, kw_only=True)
class TurnOfAny(TurnState):
    """A turn in a list over conversations, without its texts."""

    conversation_id: UUID
    title: str
    """Title of its conversation."""
    user_id: str
    """The caller's own name for the user."""
    expert: str
    accepted_at: datetime
    """When the user's message arrived."""


@dataclass(frozen=True, kw_only=True)
class ListedTurn(TurnState):
    """A turn of a conversation, without its texts."""

    user_message_id: UUID
    assistant_message_id: UUID | None
    sources: list[Source]
    """Passages that its prompt showed."""
    memory_changes: list[MemoryChange]
    accepted_at: datetime
    """When the user's message arrived."""
    experiments: dict[str, str] | None
    """Names of its variants, by the names of their experiments."""
    branch_id: UUID | None
    """The branch that it is on; None = the conversation's current course."""
