"""The state of one turn: what each node reads and writes.

A turn starts from a fresh state. The transcript is the table `messages`, not a growing checkpoint.
LangGraph drops a key it does not know without a word, so nodes are annotated to return
`ConversationState`, which makes the type checker refuse a misspelt key.
"""

import operator
from datetime import date, datetime
from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage
from typing_extensions import TypedDict

AgentType = Literal["hybrid_agent", "naive_rag_agent"]
RouteMethod = Literal["explicit", "keywords", "similarity", "model", "default"]
"""Who decided where a message goes: the caller, the words of a base's profile, how close the message is to it, the
small model; or nobody."""
Compose = Literal["single", "progressive"]
"""Whether an answer with quick tools is begun after all of their results, or as soon as the first is there."""
ContextStrategy = Literal["summary", "topics", "window"]
"""How a conversation stays bounded: by a rolling summary, by archived topics, or by its newest messages alone."""


Part = Literal[
    "core_memory",
    "persona_card",
    "recall",
    "days",
    "tone",
    "time",
    "knowledge",
    "quick_tools",
    "memory_agent",
]
"""What can be switched off for an expert, and mostly by a setting: what is always known of the user, and them in
brief; what earlier conversations said; prepared answers to questions about days; how the user sounds; the present
time; knowledge bases where the caller names none; tools that run by themselves; the agent that files what is worth
remembering."""
Emotion = Literal["anxiety", "excitement", "confusion", "trust", "frustration"]
DominantTone = Literal["anxiety", "excitement", "confusion", "trust", "frustration", "neutral"]
Pace = Literal["slow", "steady", "brisk"]
"""How an answer should go on: step by step, as usual, or straight to the point."""
EmotionScores = dict[Emotion, float]
"""How much there is of each emotion, 0 to 1."""


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


class QuickCall(TypedDict):
    """A call of a tool that the message itself asks for, without a model deciding."""

    id: str
    name: str
    arguments: dict[str, Any]


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

    kb_prefix: str
    chunk_id: str
    document_id: str
    document: str
    """The document's name in the base."""
    position: int
    """Among the document's passages, from 0."""
    heading: str
    """The headings above it, the outermost first, joined by ` > `; empty where there are none."""
    page: int | None
    """From 1; None where the document has no pages."""
    text: str
    score: float
    """0 to 1, relative to the best of its search."""


class Source(TypedDict):
    """Where a passage comes from that the prompt of an answer showed."""

    kb_prefix: str
    document: str
    position: int
    heading: str
    page: int | None
    score: float


class RecalledEpisode(TypedDict):
    """An episode that was recalled, as the prompt shows it."""

    episode_id: str
    episode_type: str
    date: str
    """The user's local day on which it was."""
    text: str
    score: float


class TimeReference(TypedDict):
    """The past conversation that a message asks about."""

    kind: Literal["days", "last_visit", "just_now"]
    """Days that it names; or, without a date, the visit before this one, or what was said a moment ago."""
    start_date: date | None
    """The user's local day, inclusive; None where no date is named."""
    end_date: date | None
    """The same; today at the latest."""
    matched_text: str
    """The words that name the time."""
    detail: bool
    """Whether it asks for a detail, which a summary may lack."""
    alone: bool
    """Whether the message asks for nothing else."""


class SaidThenLine(TypedDict):
    """A message of the days that a message asks about, as the prompt shows it."""

    message_id: str
    at: str
    """The user's local date and time."""
    speaker: str
    text: str


class DaySummary(TypedDict):
    """What was said on a day, as the prompt shows it."""

    date: str
    """The user's local day."""
    text: str


class AskedDays(TypedDict):
    """The days that a message asks about, and what the prompt tells of them."""

    matched_text: str
    start: str
    """The first local day; of the visit before, its day."""
    end: str
    known: bool
    """False = what was said then could not be read."""
    summaries: list[DaySummary]
    """Oldest first; none where nothing was said."""
    said: list[SaidThenLine]
    """In order, where a detail is asked for."""
    to_summarise: list[str]
    """Ids of visits whose days are summarised behind the answer."""
    dropped: list[dict[str, Any]]
    """What the budget left no room for, for the report."""


class Tone(TypedDict):
    """How the user sounds, by what they said themselves."""

    message_scores: EmotionScores
    """Of this turn's message alone."""
    scores: EmotionScores
    """Over the last five messages, the newest weighing most."""
    dominant: DominantTone
    empathy: float
    """How much the answer should attend to how the user feels, 0 to 1; it follows how they took the answers."""
    pace: Pace


class TokenUsage(TypedDict):
    """Tokens of all model calls of the turn, as the provider reported them."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_tokens: int
    model_calls: int


class ContextPolicy(TypedDict):
    """What the expert says of the prompt."""

    strategy: ContextStrategy
    window: int
    """Tokens that the model's context holds; for the strategy `topics`."""
    budget: int | None
    """Tokens that its prompts may have, the user's message not counted; None = as configured."""
    threshold: float
    """Share of `window` at which topics are archived, 0 to 1."""
    min_archive_messages: int


class TopicSummary(TypedDict):
    """An archived topic as the prompt shows it."""

    title: str
    summary: str


class CoreMemoryBlock(TypedDict):
    """One section of core memory."""

    content: dict[str, Any]
    version: int
    """From 1; one more with every change."""
    rewritten_version: int
    """The last version that was written as a whole, by the user or a rollback; 0 = none."""


CoreMemorySections = dict[str, CoreMemoryBlock]
"""The core memory of a user with an expert, by the sections' names."""


class PrefixMark(TypedDict):
    """A place in a prompt, up to which the next one can be compared with it."""

    section: str
    messages: int
    """Messages of the prompt up to here."""
    digest: str
    """Of all of them."""


class Epoch(TypedDict):
    """What a conversation's prompts begin with until the next epoch, so that their beginning stays the same."""

    number: int
    """From 1."""
    strategy: ContextStrategy
    reason: str
    """Why it began."""
    begun_at: datetime
    summary: str
    summary_version: int
    """0 = there was no summary."""
    topics: list[TopicSummary]
    history_from: tuple[datetime, str] | None
    """`created_at` and id of the last message before its history; None = the history is the whole conversation."""
    core_memory: dict[str, dict[str, Any]]
    """Content of each section when it began."""
    core_versions: dict[str, int]
    """Their versions then."""
    persona_card: str
    """What was known of the user in brief when it began; empty = nothing, or none is shown."""
    prefix: list[PrefixMark]
    """Of the last prompt of the epoch."""


class SharedPrefix(TypedDict):
    """How much of the prompt begins as the turn before began."""

    tokens: int
    share: float
    """Of the prompt but for its volatile tail and the new message, 0 to 1."""


class ContextReport(TypedDict):
    """What the prompt was made of."""

    budget: int
    """Tokens allowed, the user's message not counted."""
    tokens: dict[str, int]
    """Estimated tokens per section."""
    dropped: list[dict[str, Any]]
    """What did not fit, each with `section`, `items` and `reason`."""
    parts: list[Part]
    """What was on in the turn."""
    strategy: ContextStrategy
    epoch: int
    epoch_reason: str
    prefix: SharedPrefix
    recall: dict[str, Any]
    """What recall asked, what it found with its ranks and score, and why something is not shown; empty where
    nothing was recalled."""
    sources: list[Source]
    """Of the passages that the prompt showed, the best first."""


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
    max_context_tokens: int | None
    """A smaller budget for this turn's prompt; None = the configured one."""
    compose: Compose | None
    """How an answer with quick tools is put together; None = as configured."""
    filler: bool | None
    """Whether the user is told that quick tools were started; None = as configured."""
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
    context_policy: ContextPolicy
    begins: bool
    """Whether the conversation begins with this turn."""
    remembers: bool
    """Whether there is any episode of the user to recall."""
    core_memory_generation: int | None
    """Of the user's core memory when the turn was opened, which is to be known at least; 0 = there was none,
    None = whatever is the newest when it is read."""
    knowledge_version: str | None
    """Of the tenant's knowledge bases when the turn was opened; empty = there are none, None = not known."""
    parts_off: list[Part]
    """What the expert goes without."""
    now: datetime
    """When the turn began, with time zone. Nodes read no clock of their own for what they decide."""

    # route
    parts: list[Part]
    """What is on in this turn."""
    route_decision: RouteDecision
    kb_prefix: str | None
    worker_name: str
    use_retrieval: bool
    handler: str | None
    """Prompt strategy of the routed knowledge base; None = the usual one."""
    kb_instructions: str
    """What the routed knowledge base's operator tells the model; may be empty."""
    route_undecided: bool
    """Whether rules were not sure; then `match` settles these keys once the message's embedding is there."""
    quick_tools: list[QuickCall]
    """Calls that the message asks for so plainly that no model has to decide; empty for most messages."""
    routing_ms: float

    time_reference: TimeReference | None
    """The past that the message asks about; None = it asks about none."""

    # history
    history: list[HistoryMessage]
    """Completed messages of this conversation that no summary or topic of the epoch covers, oldest first."""
    epoch: Epoch
    core_memory: CoreMemorySections | None
    """As it is now; None = it could not be read, and the prompt goes without."""
    core_memory_changes: dict[str, dict[str, Any]]
    """What was added to it since the epoch began."""
    context_budget: int
    """Tokens that the prompt may have, the user's message not counted."""
    after_turn: list[str]
    """Names of the jobs that the turn causes when it completes."""

    episodic_memory: list[RecalledEpisode]
    """Episodes that bear on the message, best first."""
    recall: dict[str, Any]
    """What recall asked, found and left out, for the report."""

    tone: Tone | None
    """How the user sounds; None = it is not looked at."""
    last_visit: datetime | None
    """When the user was last active with this expert before this message; None = never, or it is not known."""
    persona_card: str
    """What the prompt's beginning says of the user in brief, as of the epoch; empty = nothing."""
    time_note: str
    """What the prompt says of the present time; empty = nothing."""

    asked_days: AskedDays | None
    """What there is of the past that the message asks about; None = it asks about none."""
    told_without_model: bool
    """Whether nothing was said then and nothing else is asked, so that no model has to be."""

    message_vector: list[float] | None
    """The message's embedding, where recall made one; one call serves recall, routing and knowledge bases."""

    # retrieve
    retrieval_results: list[Passage]
    retrieval_ms: float

    # generate, quick and tools (tool messages); quick also adds to `answer` and `usage`
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
