"""The check of configured models: what each accepts, and the setting to change."""

import pytest

from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.llm.model_checks import ModelCheck, check_models
from services.platform.settings import load_settings
from tests.support.model_server import EmbeddingsScript, ModelServer, Received, Reply, ToolCall


async def _check(server: ModelServer, api: str, **more: object) -> list[ModelCheck]:
    endpoint = {"llm_base_url": server.base_url, "llm_api_key": "k-12345678", "llm_api": api}
    settings = load_settings(_env_file=None, llm_model="main", **endpoint, **more)
    models, embedder = ChatModels(settings), Embedder.of(settings)
    try:
        return await check_models(settings, models, embedder)
    finally:
        await models.close()
        await embedder.close()


def _wants_schema(received: Received) -> bool:
    return "response_format" in received.body or "format" in (received.body.get("text") or {})


def capable(received: Received) -> Reply:
    """A model that does all that it is asked."""
    if received.body.get("tools"):
        return Reply(tool_calls=[ToolCall("report_ready", {})])
    return (
        Reply(['{"ready"', ": true}"])
        if _wants_schema(received)
        else Reply(["January, ", "February, March."], gap_s=0.3)
    )


def strict(received: Received) -> Reply:
    """A model with a strict chat template, without tools and schemas, that does not stream."""
    if received.body.get("tools"):
        return Reply(status=400, error_message="main does not support tools")
    if _wants_schema(received):
        return Reply(status=400, error_message="response_format is not supported")
    if "system" in received.roles[1:]:
        return Reply(status=400, error_message="System message must be at the beginning.")
    return Reply(["January, February, March."])


async def test_a_model_that_accepts_little(model_server: ModelServer, api: str) -> None:
    model_server.default = strict
    main, _ = await _check(model_server, api)
    assert (main.answers, main.streams) == (True, False)
    assert (main.tools, main.json_schema, main.messages) == ("refused", "refused", "compatible")
    assert "main does not support tools" in main.advice[-1]


async def test_every_model_is_asked_by_its_name(model_server: ModelServer, api: str) -> None:
    model_server.default = capable
    checks = await _check(model_server, api, small_llm_model="little", llm_fallback_models="spare,little")
    assert [(check.model, check.roles) for check in checks[:-1]] == [
        ("main", ["main"]),
        ("little", ["small", "fallback"]),
        ("spare", ["fallback"]),
    ]
    assert {request.body["model"] for request in model_server.requests} == {"main", "little", "spare"}


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        (Reply(status=401, error_message="Incorrect API key provided: k-12345678"), "ANAMNESIS_LLM_API_KEY"),
        (Reply(status=404, error_message="The model `main` does not exist"), "ANAMNESIS_LLM_MODEL"),
        (Reply(status=500), "scripted 500"),
    ],
)
async def test_a_model_that_does_not_answer_is_asked_once(
    model_server: ModelServer, api: str, reply: Reply, advice: str
) -> None:
    model_server.default = reply
    main, _ = await _check(model_server, api)
    assert not main.answers
    assert (main.tools, main.json_schema, main.messages) == ("not checked",) * 3
    assert advice in main.advice[0]
    assert "k-12345678" not in main.advice[0]
    assert len(model_server.requests) == 1


@pytest.mark.parametrize(
    ("script", "advice"),
    [
        (EmbeddingsScript(status=401), "ANAMNESIS_EMBEDDING_API_KEY"),
        (EmbeddingsScript(status=404), "ANAMNESIS_EMBEDDING_MODEL"),
        (EmbeddingsScript(dimensions=3), "ANAMNESIS_EMBEDDING_DIM"),
    ],
)
async def test_what_is_wrong_with_embeddings_names_the_setting(
    model_server: ModelServer, script: EmbeddingsScript, advice: str
) -> None:
    model_server.embeddings = script
    more = {"embedding_model": "e-1", "embedding_dim": 8, "embedding_base_url": model_server.base_url}
    *_, embedding = await _check(model_server, "chat", **more)
    assert not embedding.answers
    assert advice in embedding.advice[0]
