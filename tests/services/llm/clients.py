"""The clients under test, and the stock one beside which they are put."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import httpx2
from langchain_core.messages import AIMessage, AIMessageChunk, message_chunk_to_message
from langchain_openai import ChatOpenAI

from services.llm.calls import finish_of
from services.llm.chat_models import ChatModels, ModelUsage
from services.llm.lean_openai import LeanChatOpenAI
from tests.support.model_server import ModelServer

Make = Callable[..., ChatModels]
"""Makes models for an endpoint's address and API, and further settings."""

SECRET = "sk-very-secret"


def facts_of(message: AIMessage | AIMessageChunk) -> tuple[object, ...]:
    """What of a message must be equal."""
    whole = message_chunk_to_message(message) if isinstance(message, AIMessageChunk) else message
    assert isinstance(whole, AIMessage)
    calls = [(call["name"], call["args"], call["id"]) for call in whole.tool_calls]
    return whole.text, calls, whole.invalid_tool_calls, ModelUsage.of(whole), finish_of(whole)


def lean(server: ModelServer, http: httpx2.AsyncClient, api: str, **more: Any) -> LeanChatOpenAI:
    """The client under test."""
    return LeanChatOpenAI(**{**_options(server, http, api), **more})


def stock(server: ModelServer, http: httpx2.AsyncClient, api: str, **more: Any) -> ChatOpenAI:
    """The client whose messages are the right ones."""
    return ChatOpenAI(**_options(server, http, api), **more)


def _options(server: ModelServer, http: httpx2.AsyncClient, api: str) -> dict[str, Any]:
    return {
        "model": "m-1",
        "base_url": server.base_url,
        "api_key": "sk-test",
        "use_responses_api": api == "responses",
        "stream_usage": True,
        "max_retries": 0,
        "http_async_client": http,
    }


async def streamed(model: ChatOpenAI, **options: Any) -> AIMessageChunk:
    """The whole of `astream`."""
    whole: Any = None
    async for part in model.astream("Hello", **options):
        whole = part if whole is None else whole + part
    assert isinstance(whole, AIMessageChunk)
    return whole


def cut_at(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]
