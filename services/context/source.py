"""Sources of the prompt's sections: each reads what it needs and then chooses what to show."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from services.llm.token_estimates import TokenEstimator
from services.llm.tokens import IMAGE_TOKENS, MESSAGE_OVERHEAD
from services.memory.blocks import Owner
from services.text.language import Language
from state.conversation import EarlierMessage
from state.memory import Recognised
from state.prompt import ContextPolicy, Epoch, Feature, HistoryMessage, RecallLimits, TimeReference
from state.section import Section

Loaded = TypeVar("Loaded")
History = Callable[[], Awaitable[Sequence[HistoryMessage]]]
"""Waits for what was said before in the conversation."""


@dataclass(frozen=True)
class PromptTurn:
    """The facts of a turn that its prompt depends on."""

    owner: Owner
    conversation_id: UUID
    message_id: UUID
    """Id of the user's message; only what was said before it is shown."""
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
    """Whether the conversation begins with this message, so that nothing has to be read of it."""
    remembers: bool = True
    """Whether there is any episode of the user to recall."""
    reflects: bool = True
    """Whether there may be a private note of the expert."""
    core_memory_generation: int | None = None
    """Least generation of the user's core memory to use; 0 = there is none, None = the newest."""
    memory_generation: int | None = None
    """Generation of the user's recallable memory; None = not known."""
    reference: TimeReference | None = None
    """The past that the message asks about."""
    most_tokens: int | None = None
    """A smaller budget for this prompt."""
    commands: Recognised = field(default_factory=Recognised)
    """What the message asks memory to do."""
    recall_limits: RecallLimits | None = None
    """Other ones than the configured."""
    instructions: str = ""
    """The system messages of the client's application."""
    attached: Sequence[str] = ()
    """What the client's application put around the message."""
    earlier: Sequence[EarlierMessage] = ()
    """What was said before, of a temporary turn."""
    temporary: bool = False
    """Whether nothing of it is kept."""
    without: frozenset[str] = frozenset()
    """Ids of memories and messages that this answer goes without."""

    @property
    def message_tokens(self) -> int:
        """Estimated tokens of the user's message."""
        return self.tokens.count(self.message) + MESSAGE_OVERHEAD + IMAGE_TOKENS * self.images


@dataclass(frozen=True)
class ShownConversation:
    """What a prompt shows of its conversation."""

    epoch: Epoch
    history: list[HistoryMessage]
    budget: int
    """Tokens that the prompt may have, the user's message not counted."""
    language: Language = "en"
    """Language of everything the service writes into the prompt: that of the oldest message shown."""
    core_memory_changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What was added to core memory since the epoch began."""
    full: bool = False
    """Whether topics have to be archived before the model is asked."""
    jobs: list[str] = field(default_factory=list)
    """Names of the tasks that keep it bounded, once the turn has completed."""
    cut_off: str = ""
    """The partial last answer, if it broke off."""
    excluded: frozenset[str] = frozenset()
    """Ids of memories and messages that the conversation never uses."""


class Source(Generic[Loaded]):
    """Makes sections of the prompt: `load` of all sources at the same time, then `select` of each in order."""

    name: ClassVar[str]
    """By which a turn that goes without it says so."""
    features: ClassVar[frozenset[Feature]] = frozenset()
    """It is on where any of these is; without any named, always."""
    within_s: ClassVar[float | None] = 2.0
    """Seconds to wait for `load`; the turn goes on without what takes longer. None = it sets its own limits."""
    required: ClassVar[bool] = False
    """Whether the turn fails where `load` does."""

    def when_off(self) -> Loaded | None:
        """What stands for its data where it is switched off."""
        return None

    async def load(self, turn: PromptTurn) -> Loaded | None:
        """Read what the section is made of.

        Raises:
            Unavailable: what it reads does not answer.
        """
        return None

    async def load_after(self, turn: PromptTurn, history: History) -> Loaded | None:
        """The same for a source that needs what was said before in the conversation, which is being read."""
        return await self.load(turn)

    def revise(self, turn: PromptTurn, data: "dict[type[Source[Any]], Any]") -> None:
        """Change what the sources have loaded, before any of it is selected; most sources do not."""

    def select(self, turn: PromptTurn, known: "Known") -> Sequence[Section]:
        """The sections as the prompt shows them; none where there is nothing to show."""
        return ()

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
    """Names of what failed, each once."""
    sections: list[Section] = field(default_factory=list)
    """Selected so far."""

    def of(self, source: type[Source[Loaded]]) -> Loaded | None:
        """What a source has loaded; None = it failed, or has nothing."""
        found: Loaded | None = self.data.get(source)
        return found

    def went_without(self, name: str) -> None:
        """Note that the turn goes without something."""
        if name not in self.degraded:
            self.degraded.append(name)

    @property
    def shown_messages(self) -> set[str]:
        """Ids of the stored messages that the sections selected so far show."""
        return {message_id for section in self.sections for message_id in section.message_ids}
