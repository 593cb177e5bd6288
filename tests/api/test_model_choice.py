"""The model that an admin chooses in the console: listed, tried, kept and masked."""

import asyncio
import stat
from pathlib import Path

import httpx
import pytest

from services.bootstrap import Services
from services.errors import ConfigurationError
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT
from services.platform.chosen_model import ChosenModel, choose_model, chosen_model
from services.platform.settings import load_settings
from services.platform.settings_reference import effective_settings
from tests.support.cutting_proxy import CuttingProxy
from tests.support.model_server import EmbeddingsScript, ModelServer, Reply
from tests.support.ports import free_port
from tests.support.service_process import ServiceProcess

MODEL = "/api/v1/model"
OFFLINE = pytest.mark.settings(llm_model=None, llm_base_url=None)
KEY = "sk-a-long-secret-7f3a"


@OFFLINE
async def test_a_model_is_listed_tried_and_kept(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    endpoint = {"base_url": model_server.base_url, "api_key": KEY}
    chosen = {**endpoint, "model": "scripted", "api": "chat"}
    before = (await client.get(MODEL)).json()
    assert (before["source"], before["model"], before["restarts"]) == ("none", None, False)
    offered = (await client.post(f"{MODEL}/models", json=endpoint)).json()
    assert ([each["name"] for each in offered["models"]], offered["problem"]) == (["scripted", "small"], None)
    model_server.script(Reply(["Hello there."]))
    tried = (await client.post(f"{MODEL}/try", json=chosen)).json()
    assert (tried["answer"], tried["problem"], tried["milliseconds"] > 0) == ("Hello there.", None, True)
    assert model_server.requests[-1].headers["Authorization"] == f"Bearer {KEY}"
    assert (await client.put(MODEL, json=chosen)).status_code == 204
    file = services.settings.data_dir / "model.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    again = load_settings()
    assert (again.llm_model, again.llm_base_url, again.llm_api) == ("scripted", model_server.base_url, "chat")
    assert again.llm_api_key is not None
    assert again.llm_api_key.get_secret_value() == KEY
    shown = {each.variable: (each.value, each.source) for each in effective_settings(again)}
    assert shown["ANAMNESIS_LLM_MODEL"] == ("scripted", "console")
    assert shown["ANAMNESIS_LLM_API_KEY"] == ("**********", "console")
    assert (await client.delete(MODEL)).status_code == 204
    assert not file.exists()
    assert load_settings().offline


@OFFLINE
async def test_what_is_wrong_with_an_endpoint_is_said(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}/v1"
    offered = (await client.post(f"{MODEL}/models", json={"base_url": nowhere})).json()
    assert (offered["models"], offered["problem"]) == ([], "Nothing answers at this address.")
    assert (offered["code"], offered["status"]) == ("silent", None)
    without = model_server.base_url.removesuffix("/v1")
    offered = (await client.post(f"{MODEL}/models", json={"base_url": without})).json()
    assert offered["problem"] == "It answers with status 404; its address usually ends in /v1."
    tried = await client.post(f"{MODEL}/try", json={"base_url": nowhere, "model": "m"})
    assert (tried.json()["answer"], bool(tried.json()["problem"])) == (None, True)
    model_server.script(Reply(status=401))
    refused = (await client.post(f"{MODEL}/try", json={"base_url": model_server.base_url, "model": "m"})).json()
    assert refused["answer"] is None
    wrong = await client.put(MODEL, json={"base_url": "ftp://x", "model": "m"})
    assert (wrong.status_code, wrong.json()["detail"].startswith("base_url: ")) == (422, True)
    wrong = await client.put(MODEL, json={"base_url": model_server.base_url, "model": "m", "api_key": "你的密钥"})
    assert (wrong.status_code, wrong.json()["detail"].startswith("api_key: ")) == (422, True)


@OFFLINE
async def test_a_model_that_does_not_answer_is_not_kept(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    file = services.settings.data_dir / "model.json"
    nowhere = f"http://127.0.0.1:{free_port()}/v1"
    dead = await client.put(MODEL, json={"base_url": nowhere, "model": "m"})
    assert (dead.status_code, dead.json()["code"]) == (409, "llm_unreachable")
    assert dead.json()["detail"].startswith("m was not kept: The language model cannot be reached")
    assert "screen Model" in dead.json()["detail"]
    assert "ANAMNESIS_" not in dead.json()["detail"]
    chosen = {"base_url": model_server.base_url, "api_key": KEY, "model": "scripted", "small_model": "cheap"}
    model_server.script(Reply(status=401), model="cheap")
    refused = await client.put(MODEL, json=chosen)
    assert (refused.status_code, refused.json()["code"]) == (409, "llm_unauthorized")
    assert refused.json()["detail"].startswith("cheap was not kept: ")
    assert KEY not in refused.text
    model_server.embeddings = EmbeddingsScript(status=400)
    refused = await client.put(MODEL, json={**chosen, "embedding_model": "vectors"})
    assert (refused.status_code, refused.json()["code"]) == (409, "embedding_failed")
    assert not file.exists()


@OFFLINE
async def test_the_grade_of_a_model_is_found_kept_and_set(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    chosen = {"base_url": model_server.base_url, "model": "scripted"}
    assert (await client.post(f"{MODEL}/check")).status_code == 409
    assert (await client.put(f"{MODEL}/grade", json={"grade": "well"})).status_code == 409
    assert (await client.put(MODEL, json=chosen)).status_code == 204
    assert load_settings().memory_filing_grade is None
    model_server.default = Reply(["Hello!"])
    assert (await client.put(f"{MODEL}?grade=true", json=chosen)).status_code == 204
    assert load_settings().memory_filing_grade == "none"
    await services.usage.write()
    spent = (await client.get("/api/v1/usage", params={"by": "purpose"})).json()
    assert [each["purpose"] for each in spent["items"] if each["input_tokens"]] == ["model_check"], spent
    assert spent["memory"]["calls"] == 0
    assert (await client.put(f"{MODEL}/grade", json={"grade": "some"})).status_code == 204
    again = load_settings()
    assert (again.memory_filing_grade, again.from_console("memory_filing_grade")) == ("some", True)
    assert load_settings(memory_filing_grade="well").memory_filing_grade == "well"
    assert load_settings(small_llm_model="another").memory_filing_grade is None, "it is that of another model"


@OFFLINE
async def test_a_small_and_an_embedding_model_are_kept_with_it(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    model_server.embeddings = EmbeddingsScript(dimensions=8)
    chosen = {"base_url": model_server.base_url, "api_key": KEY, "model": "scripted"}
    more = {**chosen, "small_model": "cheap", "embedding_model": "vectors"}
    assert (await client.post(f"{MODEL}/try", json=more)).json()["embedding_dim"] == 8
    assert (await client.put(MODEL, json=more)).status_code == 204
    again = load_settings()
    assert (again.small_llm_model, again.embedding_model, again.embedding_dim) == ("cheap", "vectors", 8)
    assert again.from_console("llm_model")
    named = load_settings(small_llm_model="another", embedding_api="local", embedding_model="x", embedding_dim=2)
    assert (named.small_llm_model, named.embedding_model, named.llm_model) == ("another", "x", "scripted")
    assert not named.from_console("embedding_model")

    kept = {key: value for key, value in chosen.items() if key != "api_key"} | {"keep_key": True}
    assert (await client.put(MODEL, json={**kept, "model": "small"})).status_code == 204
    assert model_server.requests[-1].headers["Authorization"] == f"Bearer {KEY}"
    assert load_settings().embedding_model is None
    elsewhere = {**kept, "base_url": f"{model_server.base_url}/"[:-4]}
    moved = await client.put(MODEL, json=elsewhere)
    assert (moved.status_code, moved.json()["detail"]) == (
        422,
        "api_key: is kept for another address; give it again",
    )


@OFFLINE
async def test_embeddings_are_asked_at_an_address_of_their_own_without_the_models_key(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.embeddings = EmbeddingsScript(dimensions=8)
    elsewhere = model_server.base_url.replace("127.0.0.1", "localhost")
    chosen = {"base_url": model_server.base_url, "api_key": KEY, "model": "scripted"}
    lonely = await client.put(MODEL, json={**chosen, "embedding_base_url": elsewhere})
    assert (lonely.status_code, lonely.json()["detail"].split(":")[0]) == (422, "embedding_base_url")
    more = {**chosen, "embedding_model": "vectors", "embedding_base_url": elsewhere}
    assert (await client.put(MODEL, json=more)).status_code == 204
    asked = model_server.requests[-1]
    assert (asked.path, asked.headers["Authorization"]) == ("/v1/embeddings", "Bearer none")
    its = "sk-another-secret-9b1c"
    assert (await client.put(MODEL, json={**more, "embedding_api_key": its})).status_code == 204
    again = load_settings()
    assert (again.embedding_base_url, again.embedding_dim) == (elsewhere, 8)
    kept = {**more, "keep_embedding_key": True}
    assert (await client.put(MODEL, json=kept)).status_code == 204
    assert model_server.requests[-1].headers["Authorization"] == f"Bearer {its}"
    moved = await client.put(MODEL, json={**kept, "embedding_base_url": model_server.base_url})
    assert (moved.status_code, moved.json()["detail"].split(":")[0]) == (422, "embedding_api_key")


@OFFLINE
async def test_models_that_chat_come_first_with_their_context(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    names = ("babbage-002", "bge-m3", "dall-e-3", "gpt-5-mini", "omni-moderation-latest", "qwen3:8b", "whisper-1")
    model_server.listed = [{"id": each, "max_model_len": 8192} for each in names]
    offered = (await client.post(f"{MODEL}/models", json={"base_url": model_server.base_url})).json()
    assert [(each["name"], each["kind"]) for each in offered["models"]] == [
        ("gpt-5-mini", "chat"),
        ("qwen3:8b", "chat"),
        ("bge-m3", "embedding"),
        ("babbage-002", "other"),
        ("dall-e-3", "other"),
        ("omni-moderation-latest", "other"),
        ("whisper-1", "other"),
    ]
    assert {each["context_tokens"] for each in offered["models"]} == {8192}


@OFFLINE
async def test_the_services_own_address_is_refused(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    own = str(client.base_url).rstrip("/")
    offered = (await client.post(f"{MODEL}/models", json={"base_url": f"{own}/v1"})).json()
    assert (offered["models"], offered["code"]) == ([], "own")
    for address in (f"{own}/v1", own):
        refused = await client.put(MODEL, json={"base_url": address, "model": "default"})
        assert (refused.status_code, refused.json()["code"]) == (409, "own")
    assert not (services.settings.data_dir / "model.json").exists()
    # A proxy that lists it beside others: only what leads back is refused.
    model_server.listed = [{"id": "default", "owned_by": "anamnesis"}, {"id": "scripted", "owned_by": "another"}]
    offered = (await client.post(f"{MODEL}/models", json={"base_url": model_server.base_url})).json()
    assert [each["name"] for each in offered["models"]] == ["scripted"]
    through = {"base_url": model_server.base_url, "model": "default"}
    assert (await client.post(f"{MODEL}/try", json=through)).json()["code"] == "own"
    assert (await client.put(MODEL, json={**through, "model": "scripted"})).status_code == 204


def test_settings_refuse_the_services_own_address() -> None:
    with pytest.raises(ConfigurationError, match="is this service's own address"):
        load_settings(llm_model="m", llm_base_url="http://localhost:8123/v1", port=8123)


@pytest.mark.slow
async def test_a_service_whose_model_is_itself_asks_nobody(data_dir: Path) -> None:
    """By way of a proxy, whose address nothing but its list of models tells apart from another's."""
    port = free_port()
    around = CuttingProxy(port, b"never said")
    process = ServiceProcess(
        data_dir, port, llm_base_url=f"http://127.0.0.1:{around.port}/v1", llm_model="default", llm_api="chat"
    ).start()
    try:
        async with httpx.AsyncClient(base_url=process.url, timeout=60) as client:
            async with asyncio.timeout(60):
                while "leads to an Anamnesis service" not in process.text:  # noqa: ASYNC110 — of another process
                    await asyncio.sleep(0.05)
            asked = {"user_id": "u", "session_id": "s", "message": "Hello?"}
            failed = await client.post("/api/v1/chat", json=asked)
            assert (failed.status_code, failed.json()["code"]) == (502, "llm_own_address")
            turns = (await client.get("/api/v1/turns", params={"user_id": "u"})).json()["items"]
            assert len(turns) == 1
            ready = (await client.get("/readyz")).json()
            (llm,) = [each for each in ready["dependencies"] if each["name"] == "llm"]
            assert (llm["state"], "leads back to an Anamnesis service" in llm["detail"]) == ("degraded", True)
    finally:
        process.end()
        around.shutdown()
        around.server_close()


@pytest.mark.settings(auth="api_key")
async def test_only_an_admin_of_the_service_chooses(client: httpx.AsyncClient, services: Services) -> None:
    _, chatter = await ApiKeys(services.database).create(DEFAULT_TENANT, "c", ["chat", "memory:read"])
    for key in (None, chatter):
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        for method, path in (
            ("GET", MODEL),
            ("PUT", MODEL),
            ("POST", f"{MODEL}/models"),
            ("POST", f"{MODEL}/try"),
        ):
            body = None if method == "GET" else {"base_url": "http://127.0.0.1:1", "model": "m"}
            assert (await client.request(method, path, json=body, headers=headers)).status_code in {401, 403}


@pytest.mark.settings(llm_model="large")
async def test_no_grade_is_kept_for_a_model_that_the_environment_hides(
    client: httpx.AsyncClient, services: Services
) -> None:
    choose_model(services.settings.data_dir, ChosenModel(model="small", base_url="http://127.0.0.1:9/v1"))
    refused = await client.put("/api/v1/model/grade", json={"grade": "well"})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    kept = chosen_model(services.settings.data_dir)
    assert kept is not None
    assert kept.filing_grade is None
