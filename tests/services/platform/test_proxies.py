"""Proxies that the environment names."""

import pytest
from langchain_core.messages import HumanMessage

from services.errors import ConfigurationError, EmbeddingFailed, ModelFailed
from services.llm.embeddings import Embedder
from services.llm.endpoint import ModelEndpoint
from services.platform.proxies import prepare_proxies, proxy_for, through
from services.platform.settings import Settings, load_settings
from tests.support.model_server import ModelServer, Reply
from tests.support.ports import free_port
from tests.support.proxies import running_proxy

VARIABLES = [
    spelling for name in ("http", "https", "all", "no") for spelling in (f"{name}_proxy", f"{name}_PROXY".upper())
]
PROVIDER = "http://provider.example/v1"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without proxies."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def _prepared(**given: str) -> dict[str, str]:
    prepare_proxies(given)
    return given


def test_this_machine_is_spared_and_what_was_spared_stays() -> None:
    assert _prepared() == {}
    assert _prepared(no_proxy="intern.example") == {"no_proxy": "intern.example"}
    given = _prepared(ALL_PROXY="socks://127.0.0.1:7891/", NO_PROXY="intern.example, localhost")
    assert given["ALL_PROXY"] == "socks5://127.0.0.1:7891/", "as every client takes it"
    assert given["no_proxy"] == given["NO_PROXY"] == "intern.example,localhost,127.0.0.1,::1"


def test_other_kinds_are_refused_by_name_without_the_password() -> None:
    with pytest.raises(ConfigurationError, match=r"^HTTPS_PROXY=socks4://h:1 cannot .*env -u HTTPS_PROXY"):
        _prepared(HTTPS_PROXY="socks4://me:secret@h:1")


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://127.0.0.1:8211/v1", None),
        ("https://a.intern.example:8443/v1", None),
        ("https://provider.example/v1", "http://secure:2"),
        ("http://provider.example/v1", "socks5://all:3"),
        ("http://notlocalhost/v1", "socks5://all:3"),
    ],
)
def test_who_is_asked_through_which(environment: pytest.MonkeyPatch, url: str, proxy: str | None) -> None:
    for name, value in {
        "https_proxy": "http://secure:2",
        "all_proxy": "socks5://all:3",
        "no_proxy": "intern.example",
    }.items():
        environment.setenv(name, value)
    assert proxy_for(url) == proxy


def test_a_proxy_is_shown_without_its_password(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("http_proxy", "http://me:secret@proxy:3128")
    assert through(PROVIDER) == " (asked through the proxy http://proxy:3128 of the environment)"


def _settings(**more: str) -> Settings:
    return load_settings(llm_model="m", llm_base_url=PROVIDER, llm_api_key="k", llm_api="chat", **more)


@pytest.mark.parametrize(("variable", "scheme"), [("http_proxy", "http"), ("ALL_PROXY", "socks5")])
async def test_a_provider_is_asked_through_the_proxy(
    environment: pytest.MonkeyPatch, model_server: ModelServer, variable: str, scheme: str
) -> None:
    model_server.script(Reply(["Good ", "day."]))
    async with running_proxy(int(model_server.base_url.split(":")[2].partition("/")[0])) as proxy:
        environment.setenv(variable, f"{scheme}://127.0.0.1:{proxy.port}")
        endpoint = ModelEndpoint(_settings())
        answer = await endpoint.ask("m", [HumanMessage("Hello")], on_text=lambda _: None)
        await endpoint.close()
    assert answer.text == "Good day."
    asked = {"http": f"POST {PROVIDER}/chat/completions", "socks5": "socks provider.example:80"}
    assert proxy.asked == [asked[scheme]]


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_a_proxy_that_is_away_is_named(environment: pytest.MonkeyPatch, scheme: str) -> None:
    proxy = f"{scheme}://127.0.0.1:{free_port()}"
    environment.setenv("all_proxy", proxy)
    endpoint = ModelEndpoint(_settings())
    with pytest.raises(ModelFailed) as failed:
        await endpoint.ask("m", [HumanMessage("Hello")], on_text=lambda _: None)
    await endpoint.close()
    assert failed.value.failure == "llm_unreachable"
    assert f"(asked through the proxy {proxy} of the environment)" in failed.value.message

    embedder = Embedder.of(_settings(embedding_model="e", embedding_dim="8"))
    with pytest.raises(EmbeddingFailed) as not_embedded:
        await embedder.embed_query("Hello")
    await embedder.close()
    assert proxy in not_embedded.value.advice
