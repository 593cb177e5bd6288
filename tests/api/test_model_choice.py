"""The model that an admin chooses in the console: listed, tried, kept and masked."""

import stat

import httpx
import pytest

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import load_settings
from services.platform.settings_reference import effective_settings
from tests.support.model_server import ModelServer, Reply
from tests.support.ports import free_port

pytestmark = pytest.mark.anyio

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
    assert (offered["models"], offered["problem"]) == (["scripted", "small"], None)
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
    assert offered == {"models": [], "problem": "Nothing answers at this address."}
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
