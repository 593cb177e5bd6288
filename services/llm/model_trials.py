"""Trials of a model before it is kept: one short message to each that answers, one text to one that embeds."""

import time
from dataclasses import dataclass, replace

from langchain_core.messages import HumanMessage
from pydantic import SecretStr

from services.errors import EmbeddingFailed, ModelFailed
from services.llm.chat_models import ChatModels
from services.llm.model_checks import reason_of
from services.llm.offered_models import is_own, text_of
from services.platform.chosen_model import ChosenModel
from services.platform.outgoing import OutgoingHttp
from services.platform.settings import Settings

_LONGEST_ANSWER = 2_000
_HELLO = "Say hello in one short sentence."
_READY = "ready"


@dataclass(frozen=True)
class Tried:
    """Result of trying the models."""

    answer: str | None
    """The main model's answer to a greeting."""
    milliseconds: float | None
    embedding_dim: int | None = None
    """Number of dimensions of the embedding model, if one is chosen."""
    problem: str | None = None
    """Why one of them cannot be used."""
    code: str | None = None
    """The kind of problem: a model's failure, `embedding_failed` or `own`."""
    model: str | None = None
    """The model with the problem."""
    detail: str | None = None
    """The endpoint's own words, without secrets."""


async def try_model(settings: Settings, chosen: ChosenModel) -> Tried:
    """Ask every model that is chosen once."""
    http = OutgoingHttp()
    try:
        if await is_own(http, chosen.base_url, chosen.api_key, chosen.model):
            return Tried(None, None, problem=text_of("own"), code="own", model=chosen.model)
    finally:
        await http.close()
    tried = settings_with(settings, chosen)
    heard = await _ask(tried, chosen)
    return (
        heard
        if heard.problem or not chosen.embedding_model
        else await _embed(tried, chosen.embedding_model, heard)
    )


def settings_with(settings: Settings, chosen: ChosenModel) -> Settings:
    """Return the settings with a model that is not kept yet."""
    key = SecretStr(chosen.api_key) if chosen.api_key else None
    embedding = chosen.embedding_endpoint
    wanted = {
        "llm_model": chosen.model,
        "llm_base_url": chosen.base_url,
        "llm_api_key": key,
        "llm_api": chosen.api,
        "embedding_model": chosen.embedding_model,
        "embedding_api": "openai",
        "embedding_base_url": embedding["embedding_base_url"],
        "embedding_api_key": SecretStr(embedding["embedding_api_key"]) if embedding["embedding_api_key"] else None,
        "embedding_dim": None,
    }
    if chosen.small_model or settings.from_console("small_llm_model"):
        wanted["small_llm_model"] = chosen.small_model
    tried = settings.model_copy(update=wanted)
    tried.note_console(["llm_model", "embedding_model"])
    return tried


async def _ask(settings: Settings, chosen: ChosenModel) -> Tried:
    models = ChatModels(settings)
    name, begun = chosen.model, time.perf_counter()
    try:
        answer = await models.probe(name, [HumanMessage(_HELLO)])
        heard = Tried(answer.text[:_LONGEST_ANSWER], round((time.perf_counter() - begun) * 1000, 1))
        if chosen.small_model and chosen.small_model != name:
            name = chosen.small_model
            await models.probe(name, [HumanMessage(_HELLO)])
    except ModelFailed as failure:
        return Tried(
            None, None, problem=reason_of(failure), code=failure.failure, model=name, detail=failure.detail or None
        )
    finally:
        await models.close()
    return heard


async def _embed(settings: Settings, name: str, heard: Tried) -> Tried:
    from services.llm.embedding_clients import EmbeddingClient  # noqa: PLC0415 — its SDK takes half a second of a start

    client = EmbeddingClient(settings)
    try:
        (vector,) = await client.embed([_READY])
    except EmbeddingFailed as failure:
        problem = f"{failure.message} ({failure.detail})"
        return replace(
            heard, answer=None, problem=problem, code="embedding_failed", model=name, detail=failure.detail or None
        )
    finally:
        await client.close()
    return replace(heard, embedding_dim=len(vector))
