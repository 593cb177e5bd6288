"""Values that make up a prompt, and the report on a prompt."""

from datetime import date, datetime
from typing import Any, Literal, NotRequired, get_args

from typing_extensions import TypedDict

from state.budget import BudgetReport
from state.client_tools import KeptRound

ContextStrategy = Literal["summary", "topics", "window"]
"""How a conversation stays bounded: by a rolling summary, by archived topics, or by its newest messages only."""
Feature = Literal[
    "core_memory",
    "persona_card",
    "recall",
    "days",
    "time",
    "mood",
    "coming_up",
    "knowledge",
    "quick_tools",
    "memory_filing",
]
"""Features that can be switched off for an expert, and most of them by a setting: core memory, the user in brief,
recall of earlier conversations, records of days, the present time, how the user feels, what is coming up,
knowledge bases that routing finds, tools that run by themselves, the memory agent."""
FEATURES: tuple[Feature, ...] = get_args(Feature)


class HistoryMessage(TypedDict):
    """A stored message as the prompt shows it."""

    message_id: str
    role: Literal["user", "assistant"]
    content: str
    parts: list[dict[str, Any]]
    """Images of the message, as OpenAI content parts; empty for most."""
    created_at: datetime
    speaker: NotRequired[str]
    """Another participant who said it; empty or absent = the user or the assistant."""
    off_record: NotRequired[bool]
    """Whether only its conversation shows it and nothing remembers it; absent = no."""


class Passage(TypedDict):
    """One passage of a knowledge base."""

    kb_prefix: str
    chunk_id: str
    document_id: str
    document: str
    """The document's name in the base."""
    position: int
    """Index among the document's passages, from 0."""
    heading: str
    """The headings above it, the outermost first, joined by ` > `; empty if there are none."""
    page: int | None
    """From 1; None if the document has no pages."""
    text: str
    score: float
    """Probability that it answers the message, 0 to 1."""


class Source(TypedDict):
    """The origin of a passage shown in a prompt."""

    kb_prefix: str
    document: str
    position: int
    heading: str
    page: int | None
    score: float


class RecalledEpisode(TypedDict):
    """An episode that was recalled, as the prompt shows it."""

    episode_id: str
    date: str
    """The user's local day of the episode."""
    text: str


class TimeReference(TypedDict):
    """The past conversation that a message refers to."""

    kind: Literal["days", "last_visit", "just_now", "past"]
    """Named days; or, without a date, the previous visit, what was said a moment ago, or any time before."""
    start_date: date | None
    """The user's local day, inclusive; None if no date is named."""
    end_date: date | None
    """Last date, inclusive; today at the latest."""
    hours: tuple[int, int] | None
    """The local hours if a part of one day is named; values beyond 24 are the following night."""
    matched_text: str
    """The words that name the time."""
    detail: bool
    """Whether it asks for a detail, which a summary may lack."""
    plain: bool
    """Whether it asks only what was talked about then: if nothing was, no model is needed."""


class SaidThenLine(TypedDict):
    """A message from the days asked about, as the prompt shows it."""

    message_id: str
    at: str
    """The user's local date and time."""
    speaker: str
    text: str


class DaySummary(TypedDict):
    """Summary of a day, as the prompt shows it."""

    date: str
    """The user's local day."""
    text: str


class AskedDays(TypedDict):
    """The days that a message asks about, and what the prompt shows of them."""

    matched_text: str
    start: str
    """The first local day; for the previous visit, its day."""
    end: str
    closest: list[str]
    """If nothing was said then: the nearest days with a record, at most one on either side."""
    whole_day: bool
    """Whether nothing was said in the named hours, so that the whole day is shown."""
    known: bool
    """False = the records could not be read."""
    summaries: list[DaySummary]
    """Oldest first; empty if nothing was said."""
    said: list[SaidThenLine]
    """Messages in order, if a detail is asked for."""
    to_summarise: list[str]
    """Ids of visits whose days are summarised in the background."""
    message_ids: list[str]
    """Messages that the summaries quote."""
    dropped: list[dict[str, Any]]
    """Items that did not fit the budget, for the report."""


class RecallLimits(TypedDict):
    """Limits of what a prompt shows of earlier conversations; None = as configured."""

    items: int | None
    """Episodes."""
    tokens: int | None


class ContextPolicy(TypedDict):
    """How an expert's prompts are made."""

    strategy: ContextStrategy
    window: int
    """Tokens in the model's context window; for the strategy `topics`."""
    budget: int | None
    """Tokens allowed for its prompts, not counting the user's message; None = as configured."""
    threshold: float
    """Fraction of `window` at which topics are archived, 0 to 1."""
    min_archive_messages: int


class TopicSummary(TypedDict):
    """An archived topic as the prompt shows it."""

    title: str
    summary: str


class CoreMemoryBlock(TypedDict):
    content: dict[str, Any]
    version: int
    """From 1; incremented with every change."""
    rewritten_version: int
    """The last version written as a whole, by the user or a rollback; 0 = none."""


CoreMemorySections = dict[str, CoreMemoryBlock]
"""The core memory of a user with an expert, by section name."""


class PrefixMark(TypedDict):
    """A position in a prompt up to which the next prompt is compared with it."""

    section: str
    messages: int
    """Number of messages of the prompt up to here."""
    digest: str
    """Digest of these messages."""


class Epoch(TypedDict):
    """The beginning of a conversation's prompts, which stays the same until the next epoch."""

    number: int
    """From 1."""
    strategy: ContextStrategy
    reason: str
    """The reason why it began."""
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
    """Versions of the sections at that time."""
    persona_card: str
    """The persona card when it began; empty = none."""
    prefix: list[PrefixMark]
    """Marks of the last prompt of the epoch."""


class SharedPrefix(TypedDict):
    """The length of the beginning that a prompt shares with that of the turn before."""

    tokens: int
    share: float
    """Share of the prompt without its volatile tail and the new message, 0 to 1."""


class PromptSection(TypedDict):
    """A section of a prompt as sent to the model."""

    name: str
    tokens: int
    """Estimated."""
    stable: bool
    """Whether it is a message in the shared beginning of prompts; all other sections form one message after it."""
    text: str
    """Empty for the conversation's own messages."""
    message_ids: list[str]
    """Ids of the conversation's messages that it shows, oldest first."""


Finish = Literal["stop", "length", "content_filter"]
"""Reason why an answer ended: complete, at its maximum length, or cut off by the endpoint's filter."""


class ContextReport(TypedDict):
    """The contents of a prompt, and how the answer to it ended."""

    budget: int
    """Tokens allowed, not counting the user's message."""
    digest: str
    """Digest of the messages first sent to the model; empty if none was asked."""
    tokens: dict[str, int]
    """Estimated tokens per section."""
    dropped: list[dict[str, Any]]
    """Items that did not fit, each with `section`, `items` and `reason`."""
    parts: list[Feature]
    """Features that were on in the turn."""
    strategy: ContextStrategy
    epoch: int
    epoch_reason: str
    prefix: SharedPrefix
    recall: dict[str, Any]
    """The queries of recall, what it found with ranks and scores, and why items are not shown; empty if
    nothing was recalled."""
    sources: list[Source]
    """Sources of the passages in the prompt, best first."""
    finish: NotRequired[Finish]
    """Reason why the answer ended; absent = it is complete."""
    request_budget: NotRequired[BudgetReport]
    """Absent: the request has no budget."""
    rounds: NotRequired[list[KeptRound]]
    """Parts of the answer that ended in calls of the client's tools; absent = there were none."""
