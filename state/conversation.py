"""The state of one turn: what each node reads and writes.

A turn starts from a fresh state. The transcript is the table `messages`, not a growing checkpoint.
To LangGraph the state is one value, which takes in what each node returns: it looks at every channel of a graph in
every step, and a channel for each key would be seventy. No schema is checked at run time, so nodes are annotated
to return `ConversationState`, which makes the type checker refuse a misspelt key.
"""

import operator
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain_core.messages import AnyMessage
from typing_extensions import TypedDict

from state.budget import RequestBudget
from state.memory import MemoryChange, PlainForm, PlannedChange
from state.prompt import (
    AskedDays,
    ContextPolicy,
    ContextReport,
    Epoch,
    Feature,
    HistoryMessage,
    Passage,
    PromptSection,
    RecallLimits,
    TimeReference,
)
from state.section import Section

AgentType = Literal["hybrid_agent", "naive_rag_agent"]
RouteMethod = Literal["explicit", "similarity", "default"]
"""How a message was routed: named by the caller, by the passages nearest to it, or by default to none. Turns of
earlier versions may have been routed by `keywords` or by the `model`."""
Compose = Literal["single", "progressive"]
"""Whether an answer with quick tools begins after all results (single), or after the first (progressive)."""


def each_once(names: Sequence[str], more: Sequence[str]) -> list[str]:
    """Concatenate both lists without duplicates."""
    return list(dict.fromkeys([*names, *more]))


def section_named(sections: Sequence[Section], name: str) -> Section | None:
    """Return the section with that name, if there is one."""
    return next((section for section in sections if section.name == name), None)


class RouteDecision(TypedDict):
    """Where a message goes, and why."""

    kb_prefix: str | None
    """Prefix of the knowledge base to read, or None."""
    worker_name: str
    """What answers: `general`, the knowledge base's handler, or the base's prefix if it has none."""
    confidence: float
    """0 to 1."""
    method: RouteMethod
    reason: str
    also: NotRequired[list[str]]
    """Prefixes of other knowledge bases that are searched as well; absent if there are none."""


class QuickCall(TypedDict):
    """A call of a tool that the message itself asks for, without a model deciding."""

    id: str
    name: str
    arguments: dict[str, Any]


class TokenUsage(TypedDict):
    """Tokens of all model calls of the turn, as the provider reported them, or estimated if it reported none."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_tokens: int
    model_calls: int
    estimated: NotRequired[bool]
    """True if the tokens of any call are an estimate; otherwise absent."""


class EarlierMessage(TypedDict):
    """An earlier message, sent by the caller of a temporary turn."""

    role: Literal["user", "assistant"]
    content: str
    images: NotRequired[list[str]]
    """Image addresses or data URLs."""


class Sampling(TypedDict, total=False):
    """Parameters of the model for one answer, as Chat Completions names them; absent = the model's default."""

    temperature: float
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    max_tokens: int
    """Most tokens of each call's answer, under the older name, which some servers know only."""
    max_completion_tokens: int
    stop: list[str]
    seed: int
    logit_bias: dict[str, float]
    reasoning_effort: str
    verbosity: str
    response_format: dict[str, Any]
    """Such as `{"type": "json_schema", …}`."""


class TurnInput(TypedDict, total=False):
    """The caller's message."""

    user_id: str
    """The caller's name for the user. The verified identity is in `TurnContext`."""
    message: str
    images: list[str]
    """Image addresses or data URLs, passed on to the model as content parts."""
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
    """A smaller budget for this turn's prompt; None = the configured one."""
    budget: RequestBudget
    """What this turn may use."""
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
    """The system messages of the client's application: shown to the model, never remembered."""
    attached: list[str]
    """What the client's application put around the message (passages, its own notes): shown only with this
    message, never remembered."""
    answer_external_id: str | None
    """The client's id for the answer."""
    earlier: list[EarlierMessage]
    """Earlier messages; only for an unstored turn."""
    without: list[str]
    """Ids of memories and messages to leave out of the answer."""
    sampling: Sampling
    """Parameters of the model for this turn's answer."""


class ConversationState(TurnInput, total=False):
    """The whole state. The comment above each group of keys names the node that writes it."""

    # The opener of the turn (the turn runner, or the Studio entry), before the first node
    user_message_id: str
    answer_message_id: str
    """Id under which the answer will be stored."""
    system_prompt: str
    """The expert's system prompt."""
    model: str | None
    """The expert's model; None = the configured one."""
    context_policy: ContextPolicy
    begins: bool
    """Whether the conversation begins with this turn."""
    unstored: bool
    """Whether nothing of the turn is stored."""
    remembers: bool
    """Whether the user has any episode to recall."""
    asks: bool
    """Whether a change of memory may wait for the user's consent."""
    reflects: bool
    """Whether the expert reflects on completed turns, so that there may be a private note."""
    core_memory_generation: int | None
    """Minimum generation of the user's core memory to use, as of the turn's opening; 0 = there was none,
    None = the newest when it is read."""
    memory_generation: int | None
    """Generation of the user's recallable memory when the turn was opened; None = not known."""
    recall_limits: RecallLimits | None
    """Recall limits set by an experiment; None = as configured."""
    has_knowledge: bool | None
    """Whether the tenant, or the conversation, had a knowledge base when the turn was opened; None = not known."""
    features_off: list[Feature]
    """Features that the expert switches off; read only by `route`."""
    now: datetime
    """When the turn began, with time zone. Nodes use no other clock for their decisions."""
    begun: float
    """The same in seconds of a clock that nobody can set, for durations."""

    # route
    features: list[Feature]
    """Features that are on in this turn, by the settings and the expert."""
    route_decision: RouteDecision
    kb_prefix: str | None
    use_retrieval: bool
    handler: str | None
    """Prompt strategy of the routed knowledge base; None = the default one."""
    kb_instructions: str
    """Instructions of the routed knowledge base for the model; may be empty."""
    quick_tools: list[QuickCall]
    """Calls that the message plainly asks for, so that no model has to decide; empty for most messages."""

    time_reference: TimeReference | None
    """The past time that the message asks about; None = none."""

    plain_forms: list[PlainForm]
    """Orders to memory that the message gives word for word; empty for most messages."""

    # history
    memory_plan: list[PlannedChange]
    """What the turn changes in memory when it ends."""
    memory_changes: list[MemoryChange]
    """The same changes, as the model and the caller see them."""
    sections: list[Section]
    """Sections of the prompt, in order, before anything is dropped for the budget."""
    not_recalled: list[str]
    """Ids of memories and messages that searches of this turn must not find."""
    history: list[HistoryMessage]
    """Completed messages of this conversation that no summary or topic of the epoch covers, oldest first."""
    epoch: Epoch
    prompt_language: Literal["zh", "en"]
    """Language of everything the service writes into the prompt."""
    context_budget: int
    """Tokens allowed for the prompt, not counting the user's message."""
    after_turn: list[str]
    """Names of the jobs that the turn causes when it completes."""

    asked_days: AskedDays | None
    """Records of the past time that the message asks about; None = none."""
    told_without_model: bool
    """Whether nothing was said then and nothing else is asked, so that no model is needed."""

    message_vector: list[float] | None
    """The message's embedding, if recall made one; one call serves recall, routing and knowledge bases."""

    # retrieve
    retrieval_results: list[Passage]

    # generate, quick and tools (tool messages); quick also adds to `answer` and `usage`
    messages: list[AnyMessage]
    """What follows the prompt in this turn: the model's tool calls and the tools' results. Appended, never merged
    by id, because some endpoints give every message the same one."""
    tool_rounds: int
    answer: str
    usage: TokenUsage
    context_report: ContextReport
    prompt_sections: list[PromptSection]

    # persist
    assistant_message_id: str

    # every node
    timings: dict[str, float]
    """Milliseconds per node, as `<node>_ms`; `first_token_ms` from the turn's beginning."""
    degraded: list[str]
    """Sources of context that failed in this turn and were left out, without duplicates."""
    execution_logs: list[dict[str, Any]]
    """One entry per node, only when `debug`."""


_ADDED: dict[str, Callable[[Any, Any], Any]] = {
    "messages": operator.add,
    "timings": operator.or_,
    "degraded": each_once,
    "execution_logs": operator.add,
}
"""Keys whose values add up; of every other one the newest value holds."""


def with_update(state: ConversationState, update: ConversationState) -> ConversationState:
    """Return the state after a node's update."""
    added = {
        key: add(state[key], update[key])  # type: ignore[literal-required]
        for key, add in _ADDED.items()
        if key in state and key in update
    }
    return cast("ConversationState", {**state, **update, **added})


class GraphState(TypedDict):
    """What LangGraph keeps of a turn: the state as one value."""

    turn: Annotated[ConversationState, with_update]
