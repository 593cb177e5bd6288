"""The state of one turn: what each node reads and writes.

A turn starts from a fresh state. The transcript is the table `messages`, not a growing checkpoint.
LangGraph drops a key it does not know without a word, so nodes are annotated to return
`ConversationState`, which makes the type checker refuse a misspelt key.
"""

import operator
from datetime import datetime
from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage
from typing_extensions import TypedDict

AgentType = Literal["hybrid_agent", "naive_rag_agent"]
RouteMethod = Literal["explicit", "default"]


class RouteDecision(TypedDict):
    """Where a message goes, and why."""

    kb_prefix: str | None
    """Prefix of the knowledge base to read, or None."""
    worker_name: str
    """Name of the generation strategy: `general`, or the knowledge base's prefix."""
    confidence: float
    """0 to 1."""
    method: RouteMethod
    reason: str


class HistoryMessage(TypedDict):
    """One stored message as the prompt shows it."""

    message_id: str
    role: Literal["user", "assistant"]
    content: str
    parts: list[dict[str, Any]]
    """Images of the message, as OpenAI content parts; empty for most."""
    token_count: int
    created_at: datetime


class Passage(TypedDict):
    """One passage of a knowledge base."""

    document: str
    position: int
    text: str
    score: float


class TokenUsage(TypedDict):
    """Tokens of all model calls of the turn, as the provider reported them."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_tokens: int
    model_calls: int


class ContextReport(TypedDict):
    """What the prompt was made of."""

    budget: int
    """Tokens allowed, the user's message not counted."""
    tokens: dict[str, int]
    """Estimated tokens per section."""
    dropped: list[dict[str, Any]]
    """What did not fit, each with `section`, `items` and `reason`."""


class TurnInput(TypedDict, total=False):
    """What the caller sends."""

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
    requested_kb_prefix: str | None
    """Knowledge base that the caller asked for; None = let `route` decide."""
    debug: bool
    locale: str | None
    timezone: str | None


class ConversationState(TurnInput, total=False):
    """The whole state. Each group of keys is written by the node that its comment names."""

    # Whoever opens the turn (the turn runner, or the Studio entry), before the first node
    conversation_id: str
    turn_id: str
    user_message_id: str
    answer_message_id: str
    """Id that the answer will be stored under."""
    system_prompt: str
    """The expert's system prompt."""
    model: str | None
    """The expert's model; None = the configured one."""
    now: datetime
    """When the turn began, with time zone. Nodes read no clock of their own for what they decide."""

    # route
    route_decision: RouteDecision
    kb_prefix: str | None
    worker_name: str
    use_retrieval: bool
    routing_ms: float

    # history
    history: list[HistoryMessage]
    """Completed messages of this conversation, oldest first, within the token budget."""
    history_dropped: int
    """How many older messages did not fit the budget, among those that were read."""

    # retrieve
    retrieval_results: list[Passage]
    retrieval_ms: float

    # generate, and tools (tool messages)
    messages: Annotated[list[AnyMessage], operator.add]
    """What follows the prompt in this turn: the model's tool calls and the tools' results. Appended, never
    merged by id: some endpoints give every message the same one."""
    tool_rounds: int
    answer: str
    usage: TokenUsage
    context_report: ContextReport

    # persist
    assistant_message_id: str

    # every node
    timings: Annotated[dict[str, float], operator.or_]
    """Milliseconds per node, as `<node>_ms`; `first_token_ms` from the turn's beginning."""
    degraded: Annotated[list[str], operator.add]
    """Sources of context that failed in this turn and were left out."""
    execution_logs: Annotated[list[dict[str, Any]], operator.add]
    """One entry per node, only when `debug`."""
