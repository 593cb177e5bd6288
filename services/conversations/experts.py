"""Experts: who answers in a conversation, with which instructions and model."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Annotated, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, with_config
from typing_extensions import TypedDict
from uuid_utils.compat import uuid7

from services.conversations.values import (
    MAX_PROMPT_CHARACTERS,
    MAX_SYSTEM_PROMPT_TOKENS,
    Name,
    check_system_prompt,
    not_blank,
)
from services.errors import BrokenReference, Conflict, InvalidInput, NotFound
from services.platform.postgres import Database, Row
from services.validation import no_nul
from state.prompt import FEATURES, ContextStrategy, Feature

_MAX_PERSONA_CHARACTERS = 4000

SystemPrompt = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_PROMPT_CHARACTERS),
    AfterValidator(no_nul),
    AfterValidator(not_blank),
    Field(
        description=f"Instructions that the model reads first; at most {MAX_SYSTEM_PROMPT_TOKENS} tokens, where "
        "four letters count as a token and four Chinese characters as three."
    ),
]
Persona = Annotated[
    str,
    StringConstraints(max_length=_MAX_PERSONA_CHARACTERS),
    AfterValidator(no_nul),
    Field(description="Who the expert is."),
]
Model = Annotated[
    str, StringConstraints(min_length=1, max_length=200), AfterValidator(no_nul), AfterValidator(not_blank)
]
ModelOrOurs = Annotated[Model | None, Field(description="The model that answers; null = the service's default.")]
Strategy = Annotated[ContextStrategy, Field(description="What happens to messages that do not fit the window.")]
Window = Annotated[int, Field(ge=1000, le=2_000_000, description="The model's context window, in tokens.")]
Threshold = Annotated[float, Field(ge=0.1, le=1.0, multiple_of=0.01)]
MinMessages = Annotated[int, Field(ge=10, le=1000)]
Reflection = Annotated[bool, Field(description="Whether the expert reflects on its conversations.")]

Budget = Annotated[
    int,
    Field(
        ge=500,
        le=1_000_000,
        description="Tokens allowed for its prompts, without the user's message; null = the service's default.",
    ),
]
PartsOff = Annotated[
    list[Feature],
    Field(
        max_length=len(FEATURES),
        description="Features to switch off for this expert: " + ", ".join(FEATURES) + ".",
    ),
    AfterValidator(lambda parts: list(dict.fromkeys(parts))),
]

_THRESHOLD = "The part of the window from which on older messages are shortened, in hundredths."
_MESSAGES = "How many messages are shortened at once, at the least."

_DEFAULT = "default"
_NO_NAMES = frozenset({".", ".."})
"""HTTP clients resolve these in a path, so an expert with such a name could not be reached."""

_RECOMMENDED: tuple[tuple[int, float, int], ...] = ((32_000, 0.60, 10), (64_000, 0.70, 15))
"""By maximum window: the recommended threshold for shortening the history, and minimum number of messages."""
_RECOMMENDED_BEYOND = (0.70, 20)

_COLUMNS: LiteralString = """name, persona, system_prompt, model, context_strategy, context_window,
    context_threshold::float8 AS context_threshold, min_archive_messages, reflection, context_budget_tokens,
    parts_off, created_at"""

_EXPERTS: LiteralString = f"""
SELECT {_COLUMNS}
FROM experts
WHERE tenant_id = %(tenant_id)s
  AND (%(name)s::text IS NULL OR name = %(name)s)
  AND (%(after)s::text IS NULL OR name > %(after)s)
ORDER BY name LIMIT %(limit)s
"""  # noqa: S608 — our own text only

_CREATE: LiteralString = f"""
INSERT INTO experts (id, tenant_id, name, persona, system_prompt, model, context_strategy, context_window,
                     context_threshold, min_archive_messages, reflection, context_budget_tokens, parts_off)
VALUES (%(id)s, %(tenant_id)s, %(name)s, %(persona)s, %(system_prompt)s, %(model)s, %(context_strategy)s,
        %(context_window)s, %(context_threshold)s, %(min_archive_messages)s, %(reflection)s,
        %(context_budget_tokens)s, %(parts_off)s)
ON CONFLICT (tenant_id, name) DO NOTHING
RETURNING {_COLUMNS}
"""  # noqa: S608 — our own text only

# Only the model and the budget may be set to null.
_UPDATE: LiteralString = f"""
UPDATE experts SET
    persona = coalesce(%(persona)s, persona),
    system_prompt = coalesce(%(system_prompt)s, system_prompt),
    model = CASE WHEN %(sets_model)s THEN %(model)s ELSE model END,
    context_strategy = coalesce(%(context_strategy)s, context_strategy),
    context_window = coalesce(%(context_window)s, context_window),
    context_threshold = coalesce(%(context_threshold)s::numeric, context_threshold),
    min_archive_messages = coalesce(%(min_archive_messages)s, min_archive_messages),
    reflection = coalesce(%(reflection)s, reflection),
    context_budget_tokens = CASE WHEN %(sets_budget)s
        THEN %(context_budget_tokens)s ELSE context_budget_tokens END,
    parts_off = coalesce(%(parts_off)s, parts_off)
WHERE tenant_id = %(tenant_id)s AND name = %(name)s
RETURNING {_COLUMNS}
"""  # noqa: S608 — our own text only

_DELETE = "DELETE FROM experts WHERE tenant_id = %(tenant_id)s AND name = %(name)s RETURNING 1"


@dataclass(frozen=True)
class Expert:
    """One expert of a tenant."""

    name: str
    persona: str
    system_prompt: str
    model: str | None
    """Name of the model; None = the service's default."""
    context_strategy: ContextStrategy
    context_window: int
    """Size of the model's context window in tokens."""
    context_threshold: float
    """Fraction of the window at which the history is shortened."""
    min_archive_messages: int
    """Minimum number of messages to shorten at once."""
    reflection: bool
    context_budget_tokens: int | None
    """Maximum tokens of its prompts, not counting the user's message; None = the service's default."""
    parts_off: list[Feature]
    """Features that are switched off."""
    created_at: datetime


@dataclass(frozen=True)
class NewExpert:
    """An expert to create."""

    __pydantic_config__ = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"name": "film-critic", "system_prompt": "You are a film critic."}]},
    )

    name: Annotated[Name, Field(description="The name that conversations give as `expert`; it cannot be changed.")]
    system_prompt: SystemPrompt
    persona: Persona = ""
    model: ModelOrOurs = None
    context_strategy: Strategy = "summary"
    context_window: Window = 32_000
    context_threshold: Annotated[
        Threshold | None,
        Field(
            description=f"{_THRESHOLD} Not given, or null: what is recommended for the window, 0.60 up to 32,000 "
            "tokens, 0.70 beyond."
        ),
    ] = None
    min_archive_messages: Annotated[
        MinMessages | None,
        Field(
            description=f"{_MESSAGES} Not given, or null: what is recommended for the window, 10 up to 32,000 "
            "tokens, 15 up to 64,000, 20 beyond."
        ),
    ] = None
    reflection: Reflection = False
    context_budget_tokens: Budget | None = None
    parts_off: PartsOff = field(default_factory=list)


@with_config(ConfigDict(extra="forbid"))
class ExpertChange(TypedDict, total=False):
    """A change of an expert; fields that are not given stay."""

    system_prompt: SystemPrompt
    persona: Persona
    model: ModelOrOurs
    context_strategy: Strategy
    context_window: Window
    context_threshold: Annotated[Threshold, Field(description=_THRESHOLD)]
    min_archive_messages: Annotated[MinMessages, Field(description=_MESSAGES)]
    reflection: Reflection
    context_budget_tokens: Budget | None
    parts_off: PartsOff


class Experts:
    """Creates, changes and removes experts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, tenant_id: UUID, *, after: str | None, limit: int) -> Sequence[Expert]:
        """Return experts of the tenant by name, after the name `after`."""
        values = {"tenant_id": tenant_id, "name": None, "after": after, "limit": limit}
        return await self._database.fetch(tenant_id, _EXPERTS, values, class_row(Expert))

    async def get(self, tenant_id: UUID, name: str) -> Expert:
        """One expert. Raises `NotFound` if the tenant has none of this name."""
        values = {"tenant_id": tenant_id, "name": name, "after": None, "limit": 1}
        return _only(name, await self._database.fetch(tenant_id, _EXPERTS, values, class_row(Expert)))

    async def create(self, tenant_id: UUID, new: NewExpert) -> Expert:
        """Make an expert. Raises `InvalidInput` if the name cannot be used in a URL, or the system prompt is
        too long, and `Conflict` if the tenant has one of this name."""
        if new.name in _NO_NAMES:
            raise InvalidInput("name", "cannot stand in the path of an address")
        check_system_prompt(new.system_prompt)
        values = {**asdict(new), "id": uuid7(), "tenant_id": tenant_id}
        threshold, messages = _recommended(new.context_window)
        if new.context_threshold is None:
            values["context_threshold"] = threshold
        if new.min_archive_messages is None:
            values["min_archive_messages"] = messages
        made = await self._database.fetch(tenant_id, _CREATE, values, class_row(Expert))
        if not made:
            raise Conflict(f"There is an expert named {new.name} already.")
        return made[0]

    async def update(self, tenant_id: UUID, name: str, change: ExpertChange) -> Expert:
        """Change an expert, for messages sent afterwards. Raises `InvalidInput` if the system prompt is too
        long, and `NotFound` if the tenant has none of this name."""
        if "system_prompt" in change:
            check_system_prompt(change["system_prompt"])
        unchanged = dict.fromkeys(ExpertChange.__annotations__)
        values = {
            **unchanged,
            **change,
            "sets_model": "model" in change,
            "sets_budget": "context_budget_tokens" in change,
            "tenant_id": tenant_id,
            "name": name,
        }
        return _only(name, await self._database.fetch(tenant_id, _UPDATE, values, class_row(Expert)))

    async def delete(self, tenant_id: UUID, name: str) -> None:
        """Remove an expert that nobody has talked to. Raises `NotFound` if the tenant has none of this name,
        and `Conflict` if it has conversations or core memory of users, or is the default of new conversations."""
        if name == _DEFAULT:
            raise Conflict("The expert default stays: conversations that name none begin with it.")
        values = {"tenant_id": tenant_id, "name": name}
        try:
            found = await self._database.fetch(tenant_id, _DELETE, values, tuple_row)
        except BrokenReference:
            raise Conflict(f"The expert {name} has conversations, or core memory of a user.") from None
        _only(name, found)


def _only(name: str, found: Sequence[Row]) -> Row:
    if not found:
        raise NotFound(f"There is no expert {name!r}.")
    return found[0]


def _recommended(window: int) -> tuple[float, int]:
    """Return the threshold and number of messages for a window: a small one fills up sooner."""
    for largest, threshold, messages in _RECOMMENDED:
        if window <= largest:
            return threshold, messages
    return _RECOMMENDED_BEYOND
