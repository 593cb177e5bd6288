from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import openai
import pytest

from services.llm.chat_models import ChatModels
from services.platform.patience import REST_S
from services.platform.settings import load_settings
from tests.services.llm.clients import SECRET, Make


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with openai.DefaultAioHttpClient(verify=False) as client:
        yield client


@pytest.fixture(params=["chat", "responses"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    async with AsyncExitStack() as stack:

        def make_one(base_url: str, api: str, *, rest_s: float = REST_S, **more: Any) -> ChatModels:
            settings = {"llm_model": "first", "llm_base_url": base_url, "llm_api_key": SECRET, "llm_api": api}
            values = load_settings(_env_file=None, **{**settings, **more})
            models = ChatModels(values, first_pause_s=0.01, rest_s=rest_s)
            stack.push_async_callback(models.close)
            return models

        yield make_one
