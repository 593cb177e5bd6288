"""Models as an admin wants to know them: where they are asked, which there are, and what they accept."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from pydantic import SecretStr

from services.errors import EmbeddingFailed, ModelFailed, Unavailable
from services.json_levels import shallow_json
from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.llm.request_form import ContextMessage, MessageForm
from services.platform.chosen_model import ChosenModel
from services.platform.outgoing import OutgoingFailed, OutgoingHttp
from services.platform.settings import Settings

Acceptance = Literal["accepted", "ignored", "refused", "not checked"]
"""A model's reaction to an option: `ignored` = it answered, but did not follow the option."""
AcceptedForm = Literal["native", "compatible", "user_only", "none", "not checked"]
"""The most liberal form of messages that a model accepts: with a system message anywhere, at the beginning, or in
the user's first message; or none of these."""
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
    """What one model answered to the requests of a check."""

    roles: list[str]
    """What the service uses the model for: `main`, `small`, `fallback`, `embedding`."""
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
    """What is wrong, and the setting to change."""


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
                check.advice.append(_reason(failure))
                return None
            if form == _FORMS[-1]:
                check.messages = "none"
                check.advice.append(_reason(failure))
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
        check.advice.append(f"tools: {_reason(failure)}")
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
            check.advice.append(f"JSON schema: {_reason(failure)}")
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


def _reason(failure: ModelFailed) -> str:
    return f"{failure.message} ({failure.detail})" if failure.detail else failure.message


@dataclass(frozen=True)
class Provider:
    """A provider, or a server that runs on the user's own machine."""

    name: str
    base_url: str
    api: Literal["responses", "chat"] = "chat"
    needs_key: bool = True


PROVIDERS = (
    Provider("OpenAI", "https://api.openai.com/v1", "responses"),
    Provider("DeepSeek", "https://api.deepseek.com/v1"),
    Provider("Qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
    Provider("Ollama", "http://127.0.0.1:11434/v1", needs_key=False),
    Provider("vLLM", "http://127.0.0.1:8000/v1", needs_key=False),
)
"""Others are typed in."""


_WITHIN_S = 10.0
_MOST_BYTES = 2_000_000
_MOST_NAMES = 1_000
_LONGEST_ANSWER = 2_000
_HELLO = "Say hello in one short sentence."


@dataclass(frozen=True)
class Offered:
    """The models of an endpoint."""

    models: list[str]
    problem: str | None = None
    """Why there are none."""


@dataclass(frozen=True)
class Tried:
    """What a model answered to a greeting."""

    answer: str | None
    milliseconds: float | None
    problem: str | None = None
    """Why it did not."""


async def models_of(http: OutgoingHttp, base_url: str, api_key: str | None) -> Offered:
    """Ask an OpenAI-compatible endpoint for the names of its models."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else None
    try:
        body = await http.get(
            f"{base_url.rstrip('/')}/models", {}, within_s=_WITHIN_S, most_bytes=_MOST_BYTES, headers=headers
        )
    except OutgoingFailed as failed:
        return Offered([], _problem(failed))
    try:
        data = shallow_json(body)["data"]
        names = sorted({str(each["id"]) for each in data if isinstance(each["id"], str) and each["id"]})
    except (ValueError, KeyError, TypeError):
        return Offered([], "It answers, but not with a list of models; type the model's name.")
    return Offered(names[:_MOST_NAMES])


def _problem(failed: OutgoingFailed) -> str:
    if failed.failure == "status":
        reasons = {401: "It refuses the key.", 403: "It refuses the key."}
        return reasons.get(
            failed.status or 0,
            f"It answers with status {failed.status}; its address usually ends in /v1.",
        )
    if failed.failure == "too_large":
        return "Its list of models is too long; type the model's name."
    return "Nothing answers at this address."


async def try_model(settings: Settings, chosen: ChosenModel) -> Tried:
    """Send a model one short message."""
    key = SecretStr(chosen.api_key) if chosen.api_key else None
    wanted = {
        "llm_model": chosen.model,
        "llm_base_url": chosen.base_url,
        "llm_api_key": key,
        "llm_api": chosen.api,
    }
    models = ChatModels(settings.model_copy(update=wanted))
    begun = time.perf_counter()
    try:
        answer = await models.probe(chosen.model, [HumanMessage(_HELLO)])
    except ModelFailed as failure:
        return Tried(None, None, _reason(failure))
    finally:
        await models.close()
    return Tried(answer.text[:_LONGEST_ANSWER], round((time.perf_counter() - begun) * 1000, 1))
