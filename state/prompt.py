"""Parts of a prompt: the conversation, the user, and the report."""

from datetime import date, datetime
from typing import Any, Literal

from typing_extensions import TypedDict

ContextStrategy = Literal["summary", "topics", "window"]
"""How a conversation stays bounded: by a rolling summary, by archived topics, or by its newest messages alone."""
Feature = Literal[
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
"""Features that can be switched off for an expert, and most of them by a setting: core memory, the user in brief,
recall of earlier conversations, records of days, tone, the present time, knowledge bases that routing finds,
tools that run by themselves, the memory agent."""
Emotion = Literal["anxiety", "excitement", "confusion", "trust", "frustration"]
DominantTone = Literal["anxiety", "excitement", "confusion", "trust", "frustration", "neutral"]
Pace = Literal["slow", "steady", "brisk"]
"""How an answer should go on: step by step, as usual, or straight to the point."""
EmotionScores = dict[Emotion, float]
"""How much there is of each emotion, 0 to 1."""


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
    """The past conversation that a message refers to."""

    kind: Literal["days", "last_visit", "just_now", "past"]
    """Days that it names; or, without a date, the visit before this one, what was said a moment ago, or any time
    before."""
    start_date: date | None
    """The user's local day, inclusive; None where no date is named."""
    end_date: date | None
    """The same; today at the latest."""
    hours: tuple[int, int] | None
    """The local hours of the one day, where a part of it is named; beyond 24 those of the night that follows."""
    matched_text: str
    """The words that name the time."""
    detail: bool
    """Whether it asks for a detail, which a summary may lack."""
    plain: bool
    """Whether it asks only what was talked about then: if nothing was, no model is needed to say so."""


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
    """The days that a message asks about, and what the prompt says about them."""

    matched_text: str
    start: str
    """The first local day; of the visit before, its day."""
    end: str
    closest: list[str]
    """Where nothing was said then: the nearest days with a record, at most one on either side."""
    whole_day: bool
    """Whether nothing was said in the hours that the message names, so that the whole day is shown."""
    known: bool
    """False = what was said then could not be read."""
    summaries: list[DaySummary]
    """Oldest first; none where nothing was said."""
    said: list[SaidThenLine]
    """In order, where a detail is asked for."""
    to_summarise: list[str]
    """Ids of visits whose days are summarised in the background."""
    message_ids: list[str]
    """Messages that the summaries quote."""
    dropped: list[dict[str, Any]]
    """What the budget left no room for, for the report."""


class Tone(TypedDict):
    """How the user sounds, by what they said themselves."""

    message_scores: EmotionScores
    """Scores of this turn's message alone."""
    scores: EmotionScores
    """Over the last five messages, the newest weighing most."""
    dominant: DominantTone
    empathy: float
    """How much the answer should attend to how the user feels, 0 to 1; it follows how they took the answers."""
    pace: Pace


class RecallLimits(TypedDict):
    """How much of earlier conversations a prompt shows at the most; None = as configured."""

    items: int | None
    """Episodes."""
    tokens: int | None


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
    """Digest of all of them."""


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
    """Marks of the last prompt of the epoch."""


class SharedPrefix(TypedDict):
    """How much of the prompt begins as the turn before began."""

    tokens: int
    share: float
    """Share of the prompt without its volatile tail and the new message, 0 to 1."""


class PromptSection(TypedDict):
    """A section of a prompt as the model was sent it."""

    name: str
    tokens: int
    """Estimated."""
    stable: bool
    """Whether it is a message in the beginning that prompts share; the others follow as one message."""
    text: str
    """Empty for the conversation's own messages."""
    message_ids: list[str]
    """Those of the conversation's own messages that it shows, oldest first."""


class ContextReport(TypedDict):
    """What the prompt was made of."""

    budget: int
    """Tokens allowed, the user's message not counted."""
    digest: str
    """Digest of the messages that the model was first sent; empty where none was asked."""
    tokens: dict[str, int]
    """Estimated tokens per section."""
    dropped: list[dict[str, Any]]
    """What did not fit, each with `section`, `items` and `reason`."""
    parts: list[Feature]
    """Features that were on in the turn."""
    strategy: ContextStrategy
    epoch: int
    epoch_reason: str
    prefix: SharedPrefix
    recall: dict[str, Any]
    """What recall asked, what it found with its ranks and score, and why something is not shown; empty where
    nothing was recalled."""
    sources: list[Source]
    """Sources of the passages that the prompt showed, the best first."""
