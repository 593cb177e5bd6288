"""Sources of the prompt's sections: each loads what it needs and then selects what to show; and what they share.

Tags enclose data, which nothing inside can open or close.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from services.llm.request_form import TAGS
from services.llm.token_estimates import IMAGE_TOKENS, MESSAGE_OVERHEAD, TokenEstimator
from services.memory.blocks import Owner
from services.text.language import Language
from services.text.marks import without_marks
from state.conversation import EarlierMessage
from state.memory import PlannedChange
from state.prompt import ContextPolicy, Epoch, Feature, HistoryMessage, RecallLimits, TimeReference
from state.section import Section

Loaded = TypeVar("Loaded")
History = Callable[[], Awaitable[Sequence[HistoryMessage]]]
"""Awaits the earlier messages of the conversation."""

MEMORY = "memory"
"""Around what was said or recorded before."""
DOCUMENTS = "documents"
"""Around passages of knowledge bases."""
APPLICATION = "application"
"""Around the instructions of the client's application."""

WEEKDAYS: dict[Language, Sequence[str]] = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "zh": ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"),
}
_JOINT: dict[Language, str] = {"en": "; ", "zh": "；"}
_YES: dict[Language, tuple[str, str]] = {"en": ("yes", "no"), "zh": ("是", "否")}


@dataclass(frozen=True)
class PromptTurn:
    """The facts of a turn that its prompt depends on."""

    owner: Owner
    conversation_id: UUID
    message_id: UUID
    """Id of the user's message; only earlier messages are shown."""
    message: str
    language: Language
    """Language of the message."""
    now: datetime
    timezone: str
    locale: str
    """BCP 47 tag of the user; empty = not known."""
    system_prompt: str
    policy: ContextPolicy
    tokens: TokenEstimator
    features: frozenset[Feature]
    tools: str = ""
    """The tools as the model reads them."""
    images: int = 0
    begins: bool = False
    """Whether the conversation begins with this message, so that there is nothing to read."""
    remembers: bool = True
    """Whether the user has any episode to recall."""
    asks: bool = True
    """Whether a change of memory may wait for the user's consent."""
    reflects: bool = True
    """Whether there may be a private note of the expert."""
    core_memory_generation: int | None = None
    """Minimum generation of the user's core memory to use; 0 = there is none, None = the newest."""
    memory_generation: int | None = None
    """Generation of the user's recallable memory; None = not known."""
    reference: TimeReference | None = None
    """The past time that the message asks about."""
    most_tokens: int | None = None
    """A smaller budget for this prompt."""
    within_s: float | None = None
    """Seconds that a source may take at most; None = as long as each source says."""
    memory_plan: Sequence[PlannedChange] = ()
    """What the turn changes in memory before the model is asked."""
    recall_limits: RecallLimits | None = None
    """Limits that replace the configured ones."""
    instructions: str = ""
    """The system messages of the client's application."""
    attached: Sequence[str] = ()
    """What the client's application put around the message."""
    earlier: Sequence[EarlierMessage] = ()
    """Earlier messages of a temporary turn."""
    temporary: bool = False
    """Whether the turn is temporary."""
    without: frozenset[str] = frozenset()
    """Ids of memories and messages to leave out of this answer."""

    @property
    def message_tokens(self) -> int:
        """Estimated tokens of the user's message."""
        return self.tokens.count(self.message) + MESSAGE_OVERHEAD + IMAGE_TOKENS * self.images


@dataclass(frozen=True)
class ShownConversation:
    """The part of a conversation that a prompt shows."""

    epoch: Epoch
    history: list[HistoryMessage]
    budget: int
    """Tokens allowed for the prompt, not counting the user's message."""
    language: Language = "en"
    """Language of everything the service writes into the prompt: that of the oldest message shown."""
    core_memory_changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What was added to core memory since the epoch began."""
    full: bool = False
    """Whether topics must be archived before the model is asked."""
    jobs: list[str] = field(default_factory=list)
    """Names of the tasks that keep it bounded, to run after the turn."""
    cut_off: str = ""
    """The partial last answer, if it broke off."""
    excluded: frozenset[str] = frozenset()
    """Ids of memories and messages that the conversation never uses."""


class Source(Generic[Loaded]):
    """Makes sections of the prompt: `load` of all sources runs concurrently, then `select` of each in order."""

    name: ClassVar[str]
    """Named in a turn's `degraded` if the source fails."""
    features: ClassVar[frozenset[Feature]] = frozenset()
    """The source is on if any of these is; without any, always."""
    within_s: ClassVar[float | None] = 2.0
    """Seconds to wait for `load`; the turn goes on without slower sources. None = it sets its own limits."""
    required: ClassVar[bool] = False
    """Whether the turn fails if `load` does."""

    def when_off(self) -> Loaded | None:
        """Return the data to use when the source is switched off."""
        return None

    async def load(self, turn: PromptTurn) -> Loaded | None:
        """Read what the section is made of.

        Raises:
            Unavailable: what it reads does not answer.
        """
        return None

    async def load_after(self, turn: PromptTurn, history: History) -> Loaded | None:
        """The same, for a source that needs the earlier messages of the conversation, which are still loading."""
        return await self.load(turn)

    def revise(self, turn: PromptTurn, data: "dict[type[Source[Any]], Any]") -> None:
        """Change what the sources have loaded, before anything is selected; most sources do not."""

    def select(self, turn: PromptTurn, known: "Known") -> Sequence[Section]:
        """Return the sections to show; none if there is nothing to show."""
        return ()

    @property
    def loads(self) -> bool:
        """Whether it reads anything, which takes a task; otherwise it only selects."""
        return (type(self).load, type(self).load_after) != (Source.load, Source.load_after)

    def is_on(self, turn: PromptTurn) -> bool:
        """Whether the turn has any of its features."""
        return not self.features or bool(self.features & turn.features)


@dataclass
class Known:
    """A turn's data while its sections are selected."""

    data: dict[type[Source[Any]], Any]
    """What each source has loaded; None = it failed, or has nothing."""
    conversation: ShownConversation
    degraded: list[str] = field(default_factory=list)
    """Names of failed sources, without duplicates."""
    sections: list[Section] = field(default_factory=list)
    """Selected so far."""

    def of(self, source: type[Source[Loaded]]) -> Loaded | None:
        """What a source has loaded; None = it failed, or has nothing."""
        found: Loaded | None = self.data.get(source)
        return found

    def went_without(self, name: str) -> None:
        """Record that the turn has to do without something."""
        if name not in self.degraded:
            self.degraded.append(name)

    @property
    def shown_messages(self) -> set[str]:
        """Return the ids of the stored messages shown by the sections selected so far."""
        return {message_id for section in self.sections for message_id in section.message_ids}


def inert(text: str) -> str:
    """Return the text with nothing that could open or close one of the tags, or end a message."""
    return without_marks(text, TAGS)


def tagged(name: str, text: str) -> str:
    """Return the text between the tags; it must be inert already."""
    return f"<{name}>\n{text}\n</{name}>"


def readable(value: Any, language: Language) -> str:
    """Return a JSON value as people write it, on one line: a line break could imitate a line of the prompt."""
    if isinstance(value, bool):
        return _YES[language][0 if value else 1]
    if isinstance(value, list):
        return _JOINT[language].join(readable(item, language) for item in value)
    if isinstance(value, dict):
        pairs = (f"{readable(key, language)}: {readable(each, language)}" for key, each in sorted(value.items()))
        return ", ".join(pairs)
    text = " ".join((value if isinstance(value, str) else json.dumps(value)).split())
    return inert("".join(character for character in text if character.isprintable()))
