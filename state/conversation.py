"""The state of one turn: what each node reads and writes.

A turn starts from a fresh state. The transcript is the table `messages`, not a growing checkpoint.
LangGraph drops a key it does not know without a word, so nodes are annotated to return
`ConversationState`, which makes the type checker refuse a misspelt key.
"""

import operator
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage
from typing_extensions import TypedDict

from state.memory import MemoryChange, PlannedChange, Recognised
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
    Tone,
)
from state.section import Section

AgentType = Literal["hybrid_agent", "naive_rag_agent"]
RouteMethod = Literal["explicit", "keywords", "similarity", "model", "default"]
"""Who decided where a message goes: the caller, the words of a base's profile, how close the message is to it, the
small model; or nobody."""
Compose = Literal["single", "progressive"]
"""Whether an answer with quick tools is begun after all of their results, or as soon as the first is there."""


def each_once(names: Sequence[str], more: Sequence[str]) -> list[str]:
    """Both in order, without repetition."""
    return list(dict.fromkeys([*names, *more]))


class RouteDecision(TypedDict):
    """Where a message goes, and why."""

    kb_prefix: str | None
    """Prefix of the knowledge base to read, or None."""
    worker_name: str
    """Who answers: `general`, the knowledge base's handler, or the base's prefix where it has none."""
    confidence: float
    """0 to 1."""
    method: RouteMethod
    reason: str
    also: NotRequired[list[str]]
    """Prefixes of other knowledge bases that are searched as well; left out where there are none."""


class QuickCall(TypedDict):
    """A call of a tool that the message itself asks for, without a model deciding."""

    id: str
    name: str
    arguments: dict[str, Any]


class TokenUsage(TypedDict):
    """Tokens of all model calls of the turn, as the provider reported them."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_tokens: int
    model_calls: int


class EarlierMessage(TypedDict):
    """A message that a caller sends along as having been said before."""

    role: Literal["user", "assistant"]
    content: str
    images: NotRequired[list[str]]
    """Image addresses or data URLs."""


class TurnInput(TypedDict, total=False):
    """The caller's message."""

    user_id: str
    """The caller's own name for the user. Identity itself is in `TurnContext`."""
    message: str
    images: list[str]
    """Image addresses or data URLs, passed on to the model as content parts."""
    session_id: str
    """The caller's name of the conversation."""
    agent_type: AgentType
    expert: str | None
    """Name of the expert; None = the default one."""
    space: str | None
    """Name of the space that the conversation belongs to; None = none, or that of the conversation."""
    requested_kb_prefix: str | None
    """Knowledge base that the caller asked for; None = let `route` decide."""
    max_context_tokens: int | None
    """A smaller budget for this turn's prompt; None = the configured one."""
    compose: Compose | None
    """How an answer with quick tools is put together; None = as configured."""
    filler: bool | None
    """Whether the user sees that quick tools were started; None = as configured."""
    debug: bool
    locale: str | None
    timezone: str | None
    instructions: str
    """The system messages of the client's application: shown to the model, never remembered."""
    attached: list[str]
    """What the client's application put around the message (passages, its own notes): shown with this message
    alone, never remembered."""
    answer_external_id: str | None
    """The client's own id of the answer."""
    earlier: list[EarlierMessage]
    """What was said before; only where the turn is unstored."""
    without: list[str]
    """Ids of memories and messages that the answer goes without."""


class ConversationState(TurnInput, total=False):
    """The whole state. Each group of keys is written by the node that its comment names."""

    # Whoever opens the turn (the turn runner, or the Studio entry), before the first node
    user_message_id: str
    answer_message_id: str
    """Id that the answer will be stored under."""
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
    """Whether there is any episode of the user to recall."""
    reflects: bool
    """Whether the expert thinks completed turns over, so that there may be a private note."""
    core_memory_generation: int | None
    """Least generation of the user's core memory to use, as of the turn's opening; 0 = there was none,
    None = whatever is the newest when it is read."""
    memory_generation: int | None
    """Generation of the user's recallable memory when the turn was opened; None = not known."""
    recall_limits: RecallLimits | None
    """How much of earlier conversations its prompt shows, where an experiment varies it; None = as configured."""
    knowledge_version: str | None
    """Version of the tenant's knowledge bases when the turn was opened; empty = none, None = not known."""
    features_off: list[Feature]
    """Features that the expert goes without; read by `route` alone."""
    now: datetime
    """When the turn began, with time zone. Nodes read no other clock for what they decide."""

    # route
    features: list[Feature]
    """Features that are on in this turn: by the settings, and for the expert."""
    route_decision: RouteDecision
    kb_prefix: str | None
    use_retrieval: bool
    handler: str | None
    """Prompt strategy of the routed knowledge base; None = the usual one."""
    kb_instructions: str
    """What the routed knowledge base's operator tells the model; may be empty."""
    route_undecided: bool
    """Whether rules were not sure; then `match` settles these keys once the message's embedding is there."""
    quick_tools: list[QuickCall]
    """Calls that the message asks for so plainly that no model has to decide; empty for most messages."""

    time_reference: TimeReference | None
    """The past that the message asks about; None = it asks about none."""

    memory_commands: Recognised
    """What the message asks memory to do."""

    # history
    memory_plan: list[PlannedChange]
    """What the turn changes in memory when it ends."""
    memory_changes: list[MemoryChange]
    """The same, as the model and the caller see it."""
    sections: list[Section]
    """Sections of the prompt, in order, before anything is dropped for the budget."""
    not_recalled: list[str]
    """Ids of memories and messages that no search of this turn may find."""
    history: list[HistoryMessage]
    """Completed messages of this conversation that no summary or topic of the epoch covers, oldest first."""
    epoch: Epoch
    prompt_language: Literal["zh", "en"]
    """Language of everything the service writes into the prompt."""
    context_budget: int
    """Tokens that the prompt may have, the user's message not counted."""
    after_turn: list[str]
    """Names of the jobs that the turn causes when it completes."""

    tone: Tone | None
    """How the user sounds; None = it is not looked at."""

    asked_days: AskedDays | None
    """Records of the past that the message asks about; None = it asks about none."""
    told_without_model: bool
    """Whether nothing was said then and nothing else is asked, so that no model has to be."""

    message_vector: list[float] | None
    """The message's embedding, where recall made one; one call serves recall, routing and knowledge bases."""

    # retrieve
    retrieval_results: list[Passage]

    # generate, quick and tools (tool messages); quick also adds to `answer` and `usage`
    messages: Annotated[list[AnyMessage], operator.add]
    """What follows the prompt in this turn: the model's tool calls and the tools' results. Appended, never
    merged by id: some endpoints give every message the same one."""
    tool_rounds: int
    answer: str
    usage: TokenUsage
    context_report: ContextReport
    prompt_sections: list[PromptSection]

    # persist
    assistant_message_id: str

    # every node
    timings: Annotated[dict[str, float], operator.or_]
    """Milliseconds per node, as `<node>_ms`; `first_token_ms` from the turn's beginning."""
    degraded: Annotated[list[str], each_once]
    """Sources of context that failed in this turn and were left out, each once."""
    execution_logs: Annotated[list[dict[str, Any]], operator.add]
    """One entry per node, only when `debug`."""
