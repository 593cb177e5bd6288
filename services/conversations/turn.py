"""Turns as values: requested, opened, ended and stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from services.experiments.assignment import Assignment
from state.memory import PlannedChange
from state.prompt import ContextPolicy, Epoch, Feature, RecallLimits, Tone

TurnStatus = Literal["waiting", "running", "completed", "partial", "failed", "cancelled"]
"""`waiting` until the turns before it in its conversation have ended. The last four are final: a whole answer; a
part of one; none; stopped by its caller, with what there was of the answer."""

ConflictPolicy = Literal["queue", "reject", "interrupt"]
"""Choices for a message that meets an unfinished turn of its conversation: wait; be refused; end the running turn
as partial and wait for its place."""

StopReason = Literal["cancelled", "partial"]
"""How a turn that is asked to stop ends: `cancelled` by its caller, `partial` by a newer message."""

_LEAST_BUDGET = 500
LEASE = timedelta(seconds=15)
"""An unfinished turn whose process has not renewed its lease for so long has lost its process."""

TURN_IMPORTANCE = 0.4
"""Importance of the episode that a completed turn becomes, 0 to 1."""

WITHOUT_WRITING: tuple[Feature, ...] = ("tone", "memory_agent")
"""What a temporary turn goes without: whatever keeps something of a user."""

WITHOUT_MEMORY: tuple[Feature, ...] = ("core_memory", "persona_card", "recall", "days", *WITHOUT_WRITING)
"""What it goes without where it may not read memory either."""

MOST_WAITING = 5
"""Turns that may wait in one conversation."""


@dataclass(frozen=True)
class NewTurn:
    """A caller's request. `timezone` and `locale` are for this turn; a new user's are stored."""

    tenant_id: UUID
    external_user_id: str
    session_key: str
    content: str
    images: Sequence[str] = ()
    expert: str | None = None
    space: str | None = None
    """Name of the space that a new conversation belongs to; None = none, or that of the conversation."""
    kb_prefix: str | None = None
    """Knowledge base that the caller names."""
    timezone: str | None = None
    locale: str | None = None
    idempotency_key: str | None = None
    """The same key in the same conversation is the same turn."""
    external_id: str | None = None
    """The caller's own id of the message."""
    on_conflict: ConflictPolicy = "queue"
    request: dict[str, Any] = field(default_factory=dict)
    """Everything else that was asked: another process may have to run a turn that waits."""
    lease: timedelta = LEASE


@dataclass(frozen=True)
class OpenTurn:
    """A turn whose message is stored, and what is needed to run it."""

    turn_id: UUID
    tenant_id: UUID
    user_id: UUID
    conversation_id: UUID
    user_message_id: UUID
    answer_message_id: UUID
    """Id that the answer will have: ending a turn twice with it stores one answer."""
    timezone: str
    locale: str | None
    expert_id: UUID
    expert: str
    system_prompt: str
    model: str | None
    policy: ContextPolicy
    parts_off: Sequence[Feature] = ()
    """Features that the expert goes without."""
    space_id: UUID | None = None
    """Space of its conversation; None = what is said is shared by all spaces of the user."""
    waiting: bool = False
    """Whether it has yet to wait for its place."""
    begins: bool = False
    """Whether its conversation begins with it, so that there is nothing before it to read."""
    remembers: bool = True
    """Whether there is any episode of the user to recall."""
    reflects: bool = True
    """Whether its expert thinks completed turns over, so that there may be a private note."""
    knowledge_version: str | None = None
    """Version of the tenant's knowledge bases; empty = there are none, None = not known."""
    core_memory_generation: int | None = None
    """Generation of the user's core memory, which grows with every change; 0 = none, None = it may grow yet."""
    memory_generation: int | None = None
    """Generation of the user's recallable memory, which grows with every change; None = it may grow yet."""
    experiments: Mapping[str, str] = field(default_factory=dict)
    """Names of the variants that it is given, by the names of their experiments."""
    recall_limits: RecallLimits | None = None
    """What a variant makes of the usual ones."""
    stored: bool = True
    """Whether there is anything of it in the database; an unstored turn has ids that nothing else has."""

    def given(self, assignment: Assignment) -> "OpenTurn":
        """The turn with what its variants change."""
        settings = assignment.settings
        policy = ContextPolicy(**self.policy)
        policy["budget"] = settings.get("context_budget_tokens", policy["budget"])
        limits = RecallLimits(items=settings.get("recall_items"), tokens=settings.get("recall_tokens"))
        return replace(
            self,
            experiments=assignment.names,
            recall_limits=limits,
            policy=policy,
            model=settings.get("model", self.model),
            system_prompt=settings.get("system_prompt", self.system_prompt),
            parts_off=list(dict.fromkeys([*self.parts_off, *settings.get("parts_off", ())])),
        )

    def saving(self, usual_budget: int) -> "OpenTurn":
        """The turn as it costs less: half the context, and no calls of the memory agent behind it."""
        policy = ContextPolicy(**self.policy)
        policy["budget"] = max((policy["budget"] or usual_budget) // 2, _LEAST_BUDGET)
        return replace(self, policy=policy, parts_off=list(dict.fromkeys([*self.parts_off, "memory_agent"])))


@dataclass(frozen=True)
class KnownTurn:
    """The turn that a request with the same idempotency key has opened before."""

    turn_id: UUID
    tenant_id: UUID


@dataclass(frozen=True)
class TurnOutcome:
    """How a turn ended. `answer` is what was produced, whole or not."""

    status: TurnStatus
    answer: str = ""
    route_decision: Any = None
    usage: Any = None
    timings: Any = None
    degraded: Sequence[str] = ()
    context_report: Any = None
    prompt: Any = None
    """Sections that the model was sent, with their texts."""
    error: Any = None
    epoch: Epoch | None = None
    """Stored with an answer that is complete."""
    tone: Tone | None = None
    """How its user sounded; stored when it completes."""
    recalled: Sequence[str] = ()
    """Ids of the episodes that its prompt showed."""
    episode: bool = False
    """Whether it becomes an episode, when it completes."""
    jobs: Sequence[str] = ()
    """Names of the tasks that it causes, each once a conversation."""
    visits_to_summarise: Sequence[UUID] = ()
    """Visits whose days it had to tell without a summary: those are made behind it."""
    memory: Sequence[PlannedChange] = ()
    """What it changes in memory."""
    held: bool = False
    """Whether its episode stays out of recall until it is decided whether it is to be remembered."""
    own_jobs: Sequence[str] = ()
    """Names of the tasks that it causes for itself; those of a user run one after the other, in order."""


@dataclass(frozen=True)
class StoredTurn:
    """A turn's row in the database."""

    id: UUID
    conversation_id: UUID
    status: TurnStatus
    user_message_id: UUID
    assistant_message_id: UUID | None
    answer: str | None
    route_decision: Any
    usage: Any
    timings: Any
    degraded: list[str] = field(default_factory=list)
    context_report: Any = None
    memory_changes: list[Any] = field(default_factory=list)
    error: Any = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    feedback: dict[str, Any] | None = None
    """The user's opinion of the answer."""
    experiments: dict[str, str] | None = None
    """Names of its variants, by the names of their experiments."""

    @property
    def ended(self) -> bool:
        """Whether the turn has its outcome."""
        return self.status not in {"waiting", "running"}


@dataclass(frozen=True)
class TurnOfAny:
    """A turn in a list over conversations."""

    id: UUID
    conversation_id: UUID
    title: str
    """Title of its conversation."""
    user_id: str
    """The caller's own name for the user."""
    expert: str
    status: TurnStatus
    route_decision: Any
    usage: Any
    timings: Any
    degraded: list[str]
    error: Any
    accepted_at: datetime
    """When its message came."""
    started_at: datetime
    finished_at: datetime | None
    feedback: dict[str, Any] | None


@dataclass(frozen=True)
class ListedTurn:
    """A turn of a conversation, without its texts."""

    id: UUID
    status: TurnStatus
    user_message_id: UUID
    assistant_message_id: UUID | None
    route_decision: Any
    usage: Any
    timings: Any
    degraded: list[str]
    sources: list[Any]
    """Passages that its prompt showed."""
    memory_changes: list[Any]
    error: Any
    accepted_at: datetime
    """When its message came."""
    started_at: datetime
    finished_at: datetime | None
    feedback: dict[str, Any] | None
    experiments: dict[str, str] | None
    branch_id: UUID | None
    """The branch that it is on; None = the conversation as it goes on."""
