"""The state of one turn: what each node reads and writes.

A turn starts from a fresh state; the transcript is the table `messages`, not a growing checkpoint. To LangGraph
the state is one value that takes in what each node returns, because LangGraph looks at every channel of a graph in
every step, and a channel for each key would be thirty. Nothing checks the schema at run time, so nodes are
annotated to return `ConversationState`: the type checker then refuses a misspelt key.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain_core.messages import AnyMessage
from typing_extensions import TypedDict

from state.memory import ForeignOrigin, MemoryChange, PlainForm, PlainPromise, PlainQuiet, PlannedChange
from state.prompt import (
    AskedDays,
    ContextReport,
    Epoch,
    Feature,
    HistoryMessage,
    Passage,
    PromptSection,
    TimeReference,
)
from state.section import Section

RouteMethod = Literal["explicit", "similarity", "default"]
"""How a message was routed: named by the caller, by the passages nearest to it, or by default to none. Turns of
earlier versions may have the values `keywords` or `model`."""


def each_once(names: Sequence[str], more: Sequence[str]) -> list[str]:
    """Concatenate both lists without duplicates."""
    return list(dict.fromkeys([*names, *more]))


def section_named(sections: Sequence[Section], name: str) -> Section | None:
    return next((section for section in sections if section.name == name), None)


class RouteDecision(TypedDict):
    """Where a message goes, and why."""

    kb_prefix: str | None
    """Prefix of the knowledge base to read, or None."""
    worker_name: str
    """Name of what answers: `general`, the knowledge base's handler, or the base's prefix if it has no handler."""
    confidence: float
    """Probability, 0 to 1."""
    method: RouteMethod
    reason: str
    also: NotRequired[list[str]]
    """Prefixes of other knowledge bases that are searched as well; absent if there are none."""


class QuickCall(TypedDict):
    """A call of a tool that the message itself asks for, made without a model."""

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


class ConversationState(TypedDict, total=False):
    """The whole state: what the nodes of a turn have written, beside the turn itself (`state/turn.py`).

    The comment above each group of keys names the node that writes them.
    """

    # route
    features: list[Feature]
    """Features that are on in this turn, by the settings and the expert."""
    route_decision: RouteDecision
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
    plain_promise: PlainPromise | PlainQuiet
    """Reminder that the message asks for, or quiet hours that it sets, word for word; absent for most messages."""

    # history
    memory_plan: list[PlannedChange]
    """Changes of memory that the turn makes when it ends."""
    memory_changes: list[MemoryChange]
    """Changes of memory that the turn has made, as the model and the caller see them."""
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
    context_filled: float
    """Share of its budget that the prompt takes where topics can be archived; otherwise 0."""
    summary_due: bool
    """Whether enough has been said since the newest summary to make another one."""

    asked_days: AskedDays | None
    """Records of the past time that the message asks about; None = none."""
    told_without_model: bool
    """Whether nothing was said then and nothing else is asked, so that no model is asked."""

    message_vector: list[float] | None
    """The message's embedding, if recall made one; one call serves recall, routing and knowledge bases."""

    # retrieve
    retrieval_results: list[Passage]

    # generate, quick and tools (tool messages); quick also adds to `answer` and `usage`
    messages: list[AnyMessage]
    """Messages behind the prompt in this turn: the model's tool calls and the tools' results. Appended, never
    merged by id, because some endpoints give every message the same one."""
    tool_rounds: int
    answer: str
    usage: TokenUsage
    context_report: ContextReport
    prompt_sections: list[PromptSection]

    # persist
    answer_origin: ForeignOrigin | None
    """Least trusted origin of what the prompt of the stored answer showed; None = nothing foreign."""

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
"""Functions that add up the values of a key; for every other key the newest value counts."""


def with_update(state: ConversationState, update: ConversationState) -> ConversationState:
    """Return the state after a node's update."""
    added = {
        key: add(state[key], update[key])  # type: ignore[literal-required]
        for key, add in _ADDED.items()
        if key in state and key in update
    }
    return cast("ConversationState", {**state, **update, **added})


class GraphState(TypedDict):
    """State of a turn as LangGraph keeps it, as one value."""

    turn: Annotated[ConversationState, with_update]
