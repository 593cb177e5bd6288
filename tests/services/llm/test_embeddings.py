from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_openai import OpenAIEmbeddings

from services.llm.builtin_embeddings import BuiltinEncoder
from services.llm.embedding_clients import client_of
from services.platform.settings import load_settings
from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

TEXTS = ["green tea", "绿茶", ""]


Make = Callable[..., OpenAIEmbeddings]


@pytest.fixture
async def make(model_server: ModelServer) -> AsyncIterator[Make]:
    """Makes embeddings of the scripted endpoint, and closes their connections."""
    made: list[OpenAIEmbeddings] = []

    def make_one(**more: Any) -> OpenAIEmbeddings:
        endpoint = {"embedding_model": "e-1", "embedding_base_url": model_server.base_url, "embedding_dim": 8}
        embeddings = client_of(load_settings(_env_file=None, **{**endpoint, **more}))
        assert isinstance(embeddings, OpenAIEmbeddings)
        made.append(embeddings)
        return embeddings

    yield make_one
    for embeddings in made:
        await embeddings.async_client._client.close()
        embeddings.client._client.close()


@pytest.fixture(autouse=True)
def no_downloads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever would be downloaded fails at once; the scripted server is not behind the proxy."""
    for scheme in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(scheme, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))


async def test_request_names_model_and_dimensions_and_sends_the_text_itself(
    make: Make, model_server: ModelServer
) -> None:
    await make().aembed_documents(TEXTS[:2])

    (request,) = model_server.requests
    assert request.body["model"] == "e-1"
    assert request.body["dimensions"] == 8
    assert request.body["input"] == TEXTS[:2]


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        ({}, "none"),
        ({"llm_api_key": "sk-llm"}, "sk-llm"),
        ({"llm_api_key": "sk-llm", "embedding_api_key": "sk-own"}, "sk-own"),
    ],
)
async def test_own_key_goes_before_that_of_the_language_model(
    keys: dict[str, str], sent: str, make: Make, model_server: ModelServer
) -> None:
    await make(**keys).aembed_query("tea")

    assert model_server.requests[0].headers["Authorization"] == f"Bearer {sent}"


def test_what_is_encoded_again_is_the_same() -> None:
    encoder = BuiltinEncoder()
    texts = ["My dog is called Bruno.", "我的狗叫布鲁诺。", "My dog is called Bruno."]
    for _ in range(2):
        assert np.allclose(encoder.encode_again(texts), encoder.encode(texts), atol=1e-5)
