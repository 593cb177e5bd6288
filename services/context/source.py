"""Sources of the prompt's sections, and what they share: each loads its data and then selects what to show.

Tags enclose data; nothing inside can open or close a tag.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from services.context.epochs import NO_CHANGES, CoreMemoryChanges, StoredConversation
from services.llm.request_form import TAGS
from services.llm.token_estimates import TokenEstimator
from services.memory.core.blocks import Owner
from services.text.language import Language
from services.text.marks import without_marks
from state.memory import MemoryChange, PlannedChange
from state.prompt import Epoch, Feature, HistoryMessage, TimeReference
from state.section import Section
from state.turn import OpenTurn

Loaded = TypeVar("Loaded")

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


@dataclass
class PromptDraft:
    """The prompt of a turn while its sections are gathered: what they are made for, loaded from, and selected."""

    turn: OpenTurn
    tokens: TokenEstimator
    features: frozenset[Feature]
    """Features that are on in this turn."""
    tools: str = ""
    """The tools as the model reads them."""
    reference: TimeReference | None = None
    """The past time that the message asks about."""
    memory_plan: Sequence[PlannedChange] = ()
    """Changes of memory that the turn makes before the model is asked."""
    promised: MemoryChange | None = None
    """Promise that the service makes for a model that cannot do so by a tool."""
    data: "dict[type[Source[Any]], Any]" = field(default_factory=dict)
    """Data that each source has loaded; None = it failed, or has nothing."""
    reading: "asyncio.Task[StoredConversation]" = field(init=False)
    """Reads the conversation while the sources load."""
    degraded: list[str] = field(default_factory=list)
    """Names of failed sources, without duplicates."""
    sections: list[Section] = field(default_factory=list)
    """Selected so far."""

    # What `Conversation.show` finds
    epoch: Epoch = field(init=False)
    history: list[HistoryMessage] = field(default_factory=list)
    """The messages that follow the epoch's summary or topics."""
    budget: int = 0
    """Tokens allowed for the prompt, not counting the user's message."""
    language: Language = "en"
    """Language of everything the service writes into the prompt: that of the oldest message shown."""
    core_memory_changes: CoreMemoryChanges = NO_CHANGES
    """Additions to core memory since the epoch began."""
    filled: float = 0.0
    """Share of the budget that the prompt takes where topics can be archived; otherwise 0. At 1, they must be
    archived before the model is asked."""
    summary_due: bool = False
    """Whether enough has been said since the newest summary for another one."""
    cut_off: str = ""
    """The partial last answer, if it broke off."""
    excluded: frozenset[str] = frozenset()
    """Ids of memories and messages that the conversation never uses."""

    @property
    def owner(self) -> Owner:
        """Return the owner of the memory that it is made from."""
        return Owner.of_turn(self.turn)

    @property
    def without(self) -> frozenset[str]:
        """Ids of memories and messages to leave out of this answer."""
        return frozenset(self.turn.input.get("without", ()))

    @property
    def shown_messages(self) -> set[str]:
        """Return the ids of the stored messages shown by the sections selected so far."""
        return {message_id for section in self.sections for message_id in section.message_ids}

    async def earlier_messages(self) -> Sequence[HistoryMessage]:
        """Wait for the earlier messages of the conversation, while the sources load."""
        return (await asyncio.shield(self.reading)).history

    def of(self, source: "type[Source[Loaded]]") -> Loaded | None:
        """Return the data that a source has loaded; None = it failed, or has nothing."""
        found: Loaded | None = self.data.get(source)
        return found

    def went_without(self, name: str) -> None:
        """Record that the turn has to do without something."""
        if name not in self.degraded:
            self.degraded.append(name)


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

    async def load(self, draft: PromptDraft) -> Loaded | None:
        """Read what the section is made of. Raises `Unavailable` if what it reads does not answer."""
        return None

    def revise(self, draft: PromptDraft) -> None:
        """Change what the sources have loaded, before anything is selected; most sources do not."""

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return the sections to show; none if there is nothing to show."""
        return ()

    @property
    def loads(self) -> bool:
        """Whether it reads anything, which takes a task; otherwise it only selects."""
        return type(self).load is not Source.load

    def is_on(self, draft: PromptDraft) -> bool:
        """Whether the turn has any of its features."""
        return not self.features or bool(self.features & draft.features)


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
    return inert(text if text.isprintable() else "".join(filter(str.isprintable, text)))
