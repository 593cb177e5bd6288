"""Checks of the configured models: whether each answers, and what it accepts."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool

from services.errors import EmbeddingFailed, ModelFailed, Unavailable
from services.json_levels import shallow_json
from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.llm.request_form import ContextMessage, MessageForm
from services.platform.settings import Settings

Acceptance = Literal["accepted", "ignored", "refused", "not checked"]
"""Reaction of a model to an option; `ignored` = it answered, but did not follow the option."""
AcceptedForm = Literal["native", "compatible", "user_only", "none", "not checked"]
"""Form of messages that a model accepts, the most liberal first: a system message anywhere, only at the beginning,
only inside the user's first message, or none of these."""
_FORMS: tuple[MessageForm, ...] = ("native", "compatible", "user_only")

_SYSTEM = SystemMessage("You answer in as few words as possible.")
_TALK: Sequence[BaseMessage] = (
    _SYSTEM,
    HumanMessage("Hello."),
    AIMessage("Hello. How can I help?"),
    ContextMessage(content="It is Sunday."),
    HumanMessage("Name the twelve months of the year."),
)
_SCHEMA = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}


@dataclass
class ModelCheck:
    """Answers of one model to the requests of a check."""

    roles: list[str]
    """Uses of the model in the service: `main`, `small`, `fallback`, `embedding`."""
    model: str
    answers: bool = False
    streams: bool = False
    """Whether the answer came in several pieces."""
    tools: Acceptance = "not checked"
    json_schema: Acceptance = "not checked"
    """`ignored`: it answered, but not with such JSON."""
    messages: AcceptedForm = "not checked"
    """The most liberal form of messages that it accepts."""
    dimensions: int | None = None
    """Dimensions of an embedding."""
    answer_ms: float | None = None
    """Milliseconds until the first answer, or the embedding, was complete."""
    advice: list[str] = field(default_factory=list)
    """Faults that were found, each with the setting to change."""


async def check_models(settings: Settings, models: ChatModels, embedder: Embedder) -> list[ModelCheck]:
    """Check every configured model, all at once; what a model refuses is remembered for the following turns."""
    checking = [_check(models, ModelCheck(roles, name)) for name, roles in _roles(settings, models).items()]
    checks = await asyncio.gather(*checking)
    for check in checks:
        if settings.llm_messages == "native" and check.messages in {"compatible", "user_only"}:
            check.advice.append(
                "It refuses system messages later than the first: ANAMNESIS_LLM_MESSAGES=compatible."
            )
    return [*checks, await _check_embedder(embedder)]


def _roles(settings: Settings, models: ChatModels) -> dict[str, list[str]]:
    roles: dict[str, list[str]] = {models.default_model: ["main"]}
    roles.setdefault(models.small_model, []).append("small")
    for name in () if models.offline else settings.llm_fallback_models:
        roles.setdefault(name, []).append("fallback")
    return roles


async def _check(models: ChatModels, check: ModelCheck) -> ModelCheck:
    pieces: list[str] = []
    form = await _first_answer(models, check, pieces)
    if form is None:
        return check
    check.answers, check.streams, check.messages = True, len(pieces) > 1, form
    if models.offline:
        return check
    check.tools = await _check_tools(models, check, form)
    check.json_schema = await _check_schema(models, check, form)
    return check


async def _first_answer(models: ChatModels, check: ModelCheck, pieces: list[str]) -> MessageForm | None:
    """Try ever simpler forms of messages; return the first that the model accepts, None if none is."""
    for form in _FORMS:
        begun = time.perf_counter()
        try:
            await models.probe(check.model, _TALK, on_text=pieces.append, form=form)
        except ModelFailed as failure:
            if failure.topic != "messages":  # nothing else would be answered either
                check.advice.append(reason_of(failure))
                return None
            if form == _FORMS[-1]:
                check.messages = "none"
                check.advice.append(reason_of(failure))
            continue
        check.answer_ms = round((time.perf_counter() - begun) * 1000, 1)
        return form
    return None


async def _check_tools(models: ChatModels, check: ModelCheck, form: MessageForm) -> Acceptance:
    question = HumanMessage("Call the tool report_ready.")
    try:
        await models.probe(check.model, [_SYSTEM, question], tools=[report_ready], form=form)
    except ModelFailed as failure:
        if failure.topic == "tools":
            check.advice.append(
                f"It takes no tools, so its turns go without, unless ANAMNESIS_LLM_TOOLS=on ({failure.detail})."
            )
            return "refused"
        check.advice.append(f"tools: {reason_of(failure)}")
        return "not checked"
    return "accepted"


async def _check_schema(models: ChatModels, check: ModelCheck, form: MessageForm) -> Acceptance:
    question = HumanMessage('Are you ready? Answer with JSON such as {"ready": true}.')
    described = {"type": "json_schema", "json_schema": {"name": "state", "schema": _SCHEMA, "strict": True}}
    try:
        answer = await models.probe(check.model, [_SYSTEM, question], response_format=described, form=form)
    except ModelFailed as failure:
        refused = failure.failure == "llm_rejected"
        if not refused:
            check.advice.append(f"JSON schema: {reason_of(failure)}")
        return "refused" if refused else "not checked"
    return "accepted" if _fits(answer.text) else "ignored"


async def _check_embedder(embedder: Embedder) -> ModelCheck:
    check = ModelCheck(["embedding"], embedder.model)
    begun = time.perf_counter()
    try:
        vector = await embedder.embed_query("ready")
    except EmbeddingFailed as error:
        check.advice.append(f"{error.message} {error.advice} ({error.detail})")
        return check
    except Unavailable as error:
        check.advice.append(error.message)
        return check
    check.answers, check.dimensions = True, len(vector)
    check.answer_ms = round((time.perf_counter() - begun) * 1000, 1)
    return check


@tool
def report_ready() -> str:
    """Report that you are ready."""
    return "ready"


def _fits(text: str) -> bool:
    try:
        answer: Any = shallow_json(text)
    except ValueError:
        return False
    return isinstance(answer, dict) and isinstance(answer.get("ready"), bool)


def reason_of(failure: ModelFailed) -> str:
    """Say why a model failed, with the endpoint's own words."""
    return f"{failure.message} ({failure.detail})" if failure.detail else failure.message
