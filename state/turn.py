"""A turn: what was asked, and what was found when it was opened.

The turn is LangGraph's context: every node and every tool gets it, and none can change it. No tool has a user
among its arguments, so neither the state nor a model can name another user.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Any, Literal, NotRequired
from uuid import UUID

from typing_extensions import TypedDict

from state.budget import RequestBudget
from state.client_tools import ClientRound, ClientTools
from state.memory import MemoryChange
from state.prompt import ContextPolicy, Feature, RecallLimits

AgentType = Literal["hybrid_agent", "naive_rag_agent"]
Compose = Literal["single", "progressive"]
"""Whether an answer with quick tools begins after all results (single), or after the first (progressive)."""


class EarlierMessage(TypedDict):
    """An earlier message, sent by the caller of a temporary turn."""

    role: Literal["user", "assistant"]
    content: str
    images: NotRequired[list[str]]
    """Image addresses or data URLs."""
    speaker: NotRequired[str]
    """Another participant who said it; empty or absent = the user."""


class Sampling(TypedDict, total=False):
    """Parameters of the model for one answer, as Chat Completions names them; absent = the model's default."""

    temperature: float
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    max_tokens: int
    """Maximum tokens of each call's answer, under the older name, which is the only one that some servers know."""
    max_completion_tokens: int
    stop: list[str]
    seed: int
    logit_bias: dict[str, float]
    reasoning_effort: str
    verbosity: str
    response_format: dict[str, Any]
    """Form of the answer, such as `{"type": "json_schema", …}`."""


class TurnInput(TypedDict, total=False):
    """A caller's request for a turn."""

    user_id: str
    """The caller's name for the user. The verified identity is in `OpenTurn`."""
    message: str
    images: list[str]
    """Image addresses or data URLs, passed on to the model as content parts."""
    speaker: str | None
    """Another participant who says the message; empty, None or absent = the user."""
    session_id: str
    """The caller's name for the conversation."""
    agent_type: AgentType
    expert: str | None
    """Name of the expert; None = the default one."""
    space: str | None
    """Name of the conversation's space; None = none, or the stored one."""
    requested_kb_prefix: str | None
    """Knowledge base that the caller asked for; None = let `route` decide."""
    max_context_tokens: int | None
    """Smaller budget for this turn's prompt, in tokens; None = the configured one."""
    budget: RequestBudget
    """Limits of this turn."""
    compose: Compose | None
    """How an answer with quick tools is composed; None = as configured."""
    filler: bool | None
    """Whether to tell the user that quick tools were started; None = as configured."""
    debug: bool
    approvals: bool
    """Whether the reader of the stream answers when a call needs the user's agreement."""
    locale: str | None
    timezone: str | None
    instructions: str
    """System messages of the client's application: shown to the model, never remembered."""
    attached: list[str]
    """Texts that the client's application added to the message (passages, its own notes): shown only with this
    message, never remembered."""
    cut: dict[str, int]
    """Length of the whole text in characters, by the names of `instructions` and `attached` that were cut."""
    answer_external_id: str | None
    """The client's id for the answer."""
    answer: str
    """Answer of another agent, so that no model is asked; absent = the service answers."""
    answer_from: Literal["document", "tool"] | None
    """Kind of others' words that this agent has read; None = none."""
    operations: list[str]
    """Ids of the logged operations with which this agent has changed memory for the message."""
    earlier: list[EarlierMessage]
    """Earlier messages; only for an unstored turn."""
    without: list[str]
    """Ids of memories and messages that the answer must not use."""
    sampling: Sampling
    """Parameters of the model for this turn's answer."""
    client_tools: ClientTools
    """Tools that the client brings and runs itself."""
    rounds: list[ClientRound]
    """Calls of the client's tools, with their results, that followed the message elsewhere."""


@dataclass(frozen=True, slots=True)
class Read:
    """Texts that a model has read before it changes memory."""

    said: Sequence[str] = ()
    """The user's own words, the message last."""
    foreign: Sequence[str] = ()
    """Documents, results of tools, images and pasted texts of the same turn."""
    remembered: Sequence[str] = ()
    """Texts made earlier from such words: answers, memories, summaries; and the instructions of the client's
    application."""
    agreed: Sequence[str] = ()
    """Messages of the conversation up to the last answer, if that asked something and the user says yes; else
    empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """A stored message's turn, with everything needed to run it."""

    turn_id: UUID
    tenant_id: UUID
    user_id: UUID
    """Id of the user's row, not the caller's name for the user."""
    conversation_id: UUID
    user_message_id: UUID
    answer_message_id: UUID
    """Id of the future answer: if the turn is ended twice, one answer is stored."""
    input: TurnInput
    """The caller's request."""
    timezone: str
    """IANA name, or an offset such as `+08:00`."""
    locale: str = ""
    """BCP 47 tag such as `zh-CN`; empty = not known."""
    expert_id: UUID
    """Memory belongs to the user together with this expert."""
    expert: str
    system_prompt: str
    model: str | None = None
    """Model of the expert; None = the configured one."""
    policy: ContextPolicy
    parts_off: Sequence[Feature] = ()
    """Features that the expert switches off; read only by `route`."""
    space_id: UUID | None = None
    """Space of the conversation: what is remembered in it is known only there. None = what is remembered is
    known in all spaces."""
    waiting: bool = False
    """Whether it must wait for its place."""
    begins: bool = False
    """Whether it is the first turn of its conversation, so that there is nothing to read."""
    remembers: bool = True
    """Whether the user has any episode that can be recalled."""
    asks: bool = True
    """Whether a change of memory may ask for the user's consent first."""
    reflects: bool = True
    """Whether its expert reflects on completed turns, so that there may be a private note."""
    has_knowledge: bool | None = None
    """Whether the tenant, or the conversation, has a knowledge base; None = not known."""
    has_core_memory: bool = True
    """Whether core memory may hold anything about the user for this expert."""
    memory_generation: int | None = None
    """Generation of the user's memory for recall, which every change increments; None = it may still change."""
    experiments: Mapping[str, str] = field(default_factory=dict)
    """Names of its variants of experiments, by the names of the experiments."""
    recall_limits: RecallLimits | None = None
    """Limits that a variant sets; None = as configured."""
    told: Sequence[MemoryChange] = ()
    """Changes that filing made since the user's last turn, which this turn tells."""
    paused: Sequence[UUID] = ()
    """Turns of its conversation that wait for a client's tools; this turn takes their place."""
    untold: Sequence[UUID] = ()
    """Logged operations that count as told from this turn on."""
    stored: bool = True
    """Whether it is in the database. Otherwise it is temporary: its ids exist nowhere else, no tool changes
    memory, and no search is logged."""
    now: datetime = field(default_factory=partial(datetime.now, UTC))
    """When it began to run, with time zone. Nodes use no other clock for their decisions."""
    begun: float = field(default_factory=perf_counter)
    """Its beginning by a clock that nobody can set, in seconds, for durations."""
    read: Read = Read()
    """Texts that the model has read, for tools that change memory."""
    not_recalled: frozenset[str] = frozenset()
    """Ids of memories and messages that the user excluded, so that tools do not find them."""

    @property
    def message(self) -> str:
        """The user's message."""
        return self.input["message"]

    @property
    def speaker(self) -> str:
        """Return the other participant who says the message in place of the user; empty = the user says it."""
        return self.input.get("speaker") or ""

    @property
    def is_heard(self) -> bool:
        """Return whether another agent has answered, so that the exchange is only remembered."""
        return "answer" in self.input

    @property
    def images(self) -> Sequence[str]:
        """Return the addresses or data URLs of the message's images."""
        return self.input.get("images", ())
