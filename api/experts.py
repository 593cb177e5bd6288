"""Experts: who answers in a conversation. Every chat caller can read them; admins manage them."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Body, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, with_config
from typing_extensions import TypedDict

from api.access import Admin, Chatter, ServicesOf
from api.json_router import NO_CONTENT, PathId, json_router
from api.paging import AfterName, Limit, page_by_name
from api.problems import documented
from api.schemas import Page, StrictModel, answered
from services.context.features import FEATURES
from services.context.sources.system import prompt_of
from services.conversations.experts import MAX_SYSTEM_PROMPT_TOKENS, Expert, NewExpert
from services.conversations.values import Name, no_nul, not_blank
from services.llm.token_estimates import count_tokens
from services.text.language import Language
from state.prompt import ContextStrategy, Feature

MAX_PERSONA_CHARACTERS = 4000
_MAX_PROMPT_CHARACTERS = 32_000
"""Longer texts certainly have too many tokens and are not counted."""

SystemPrompt = Annotated[
    str,
    StringConstraints(min_length=1, max_length=_MAX_PROMPT_CHARACTERS),
    AfterValidator(no_nul),
    AfterValidator(not_blank),
    Field(
        description=f"Instructions that the model reads first; at most {MAX_SYSTEM_PROMPT_TOKENS} tokens, where "
        "four letters count as a token and four Chinese characters as three."
    ),
]
Persona = Annotated[
    str,
    StringConstraints(max_length=MAX_PERSONA_CHARACTERS),
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


class ExpertRequest(StrictModel):
    """An expert to create."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "film-critic", "system_prompt": "You are a film critic."}]},
    )

    name: Name = Field(description="The name that conversations give as `expert`; it cannot be changed.")
    system_prompt: SystemPrompt
    persona: Persona = ""
    model: ModelOrOurs = None
    context_strategy: Strategy = "summary"
    context_window: Window = 32_000
    context_threshold: Threshold | None = Field(
        None,
        description=f"{_THRESHOLD} Not given, or null: what is recommended for the window, 0.60 up to 32,000 "
        "tokens, 0.70 beyond.",
    )
    min_archive_messages: MinMessages | None = Field(
        None,
        description=f"{_MESSAGES} Not given, or null: what is recommended for the window, 10 up to 32,000 "
        "tokens, 15 up to 64,000, 20 beyond.",
    )
    reflection: Reflection = False
    context_budget_tokens: Budget | None = None
    parts_off: PartsOff = Field(default_factory=list)


@with_config(ConfigDict(extra="forbid"))
class ExpertChangeRequest(TypedDict, total=False):
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


class ExpertPromptView(BaseModel):
    """The instructions that the model gets for the expert."""

    text: str
    tokens: int = Field(description="Estimated, without the tools' descriptions.")


router = json_router("/api/v1/experts", "experts")

_NOT_FOUND = documented(HTTPStatus.NOT_FOUND)
_CONFLICT = documented(HTTPStatus.CONFLICT)


@router.get("", response_model=Page[Expert])
async def experts(
    services: ServicesOf,
    caller: Chatter,
    after: AfterName = None,
    limit: Limit = 50,
) -> Any:
    """Experts of the tenant, by name."""
    items = await services.experts.page(caller.tenant_id, after=after, limit=limit)
    return page_by_name(items, limit)


@router.post("", response_model=answered(Expert), status_code=HTTPStatus.CREATED, responses=_CONFLICT)
async def create(expert: ExpertRequest, services: ServicesOf, caller: Admin) -> Any:
    """Create an expert; 409 if the name is taken."""
    return await services.experts.create(caller.tenant_id, NewExpert(**expert.model_dump()))


@router.get("/{name}", response_model=answered(Expert), responses=_NOT_FOUND)
async def get(name: PathId, services: ServicesOf, caller: Chatter) -> Any:
    """One expert."""
    return await services.experts.get(caller.tenant_id, name)


@router.get("/{name}/prompt", response_model=ExpertPromptView, responses=_NOT_FOUND)
async def prompt(
    name: PathId, services: ServicesOf, caller: Chatter, language: Annotated[Language, Query()] = "en"
) -> ExpertPromptView:
    """The instructions that the model gets for an expert in a conversation in this language."""
    expert = await services.experts.get(caller.tenant_id, name)
    remembers = not {"core_memory", "recall"} <= set(expert.parts_off)
    own = "\n\n".join(part for part in (expert.system_prompt.strip(), expert.persona) if part)
    text = prompt_of(own, language, remembers=remembers, tools=services.models.takes_tools(expert.model))
    return ExpertPromptView(text=text, tokens=count_tokens(text))


@router.patch("/{name}", response_model=answered(Expert), responses=_NOT_FOUND)
async def change(
    name: PathId, changed: Annotated[ExpertChangeRequest, Body()], services: ServicesOf, caller: Admin
) -> Any:
    """Change the given fields of an expert, for messages sent afterwards."""
    return await services.experts.update(caller.tenant_id, name, changed)


@router.delete("/{name}", **NO_CONTENT, responses=_NOT_FOUND | _CONFLICT)
async def delete(name: PathId, services: ServicesOf, caller: Admin) -> None:
    """Remove an expert; 409 if it has conversations, or is `default`."""
    await services.experts.delete(caller.tenant_id, name)
