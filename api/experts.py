"""Experts: who answers in a conversation. Every chat caller can read them; admins manage them."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Body, Query
from pydantic import BaseModel, Field

from api.access import Admin, Chatter, PathId
from api.paging import NO_CONTENT, AfterName, Limit, json_router
from api.problems import CONFLICT, NOT_FOUND
from api.schemas import Page, answered
from services.context.sources.instructions import prompt_of
from services.conversations.experts import Expert, ExpertChange, NewExpert
from services.conversations.feedback import ExpertFeedback
from services.llm.token_estimates import count_tokens
from services.text.language import Language


class ExpertPromptView(BaseModel):
    """The instructions that the model gets for the expert."""

    text: str
    tokens: int = Field(description="Estimated, without the tools' descriptions.")


router = json_router("/api/v1/experts", "experts")


@router.get("", response_model=Page[Expert])
async def experts(caller: Chatter, after: AfterName = None, limit: Limit = 50) -> Any:
    """Experts of the tenant, by name."""
    items = await caller.services.experts.page(caller.tenant_id, after=after, limit=limit)
    return {"items": items, "next": items[-1].name if len(items) == limit else None}


@router.post("", response_model=answered(Expert), status_code=HTTPStatus.CREATED, responses=CONFLICT)
async def create(new: NewExpert, caller: Admin) -> Any:
    """Create an expert; 409 if the name is taken."""
    return await caller.services.experts.create(caller.tenant_id, new)


@router.get("/{name}", response_model=answered(Expert), responses=NOT_FOUND)
async def get(name: PathId, caller: Chatter) -> Any:
    """One expert."""
    return await caller.services.experts.get(caller.tenant_id, name)


@router.get("/{name}/feedback", response_model=answered(ExpertFeedback), responses=NOT_FOUND)
async def feedback(name: PathId, caller: Chatter) -> Any:
    """How many opinions users had of an expert's answers in the last 30 days."""
    await caller.services.experts.get(caller.tenant_id, name)
    return await caller.services.feedback.of_expert(caller.tenant_id, name)


@router.get("/{name}/prompt", response_model=ExpertPromptView, responses=NOT_FOUND)
async def prompt(name: PathId, caller: Chatter, language: Annotated[Language, Query()] = "en") -> ExpertPromptView:
    """The instructions that the model gets for an expert in a conversation in this language."""
    expert = await caller.services.experts.get(caller.tenant_id, name)
    remembers = not {"core_memory", "recall"} <= set(expert.parts_off)
    own = "\n\n".join(part for part in (expert.system_prompt.strip(), expert.persona) if part)
    text = prompt_of(own, language, remembers=remembers, tools=caller.services.models.takes_tools(expert.model))
    return ExpertPromptView(text=text, tokens=count_tokens(text))


@router.patch("/{name}", response_model=answered(Expert), responses=NOT_FOUND)
async def change(name: PathId, changed: Annotated[ExpertChange, Body()], caller: Admin) -> Any:
    """Change the given fields of an expert, for messages sent afterwards."""
    return await caller.services.experts.update(caller.tenant_id, name, changed)


@router.delete("/{name}", **NO_CONTENT, responses=NOT_FOUND | CONFLICT)
async def delete(name: PathId, caller: Admin) -> None:
    """Remove an expert; 409 if it has conversations, or is `default`."""
    await caller.services.experts.delete(caller.tenant_id, name)
