"""The three tools by which a model remembers, forgets and searches."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from anamnesis_client import FoundMemory, ServiceError, WrittenMemory
from langchain_anamnesis.clients import Clients

_MOST_FOUND = 10
_NOT_FOUND = 404


def memory_tools(url: str, *, user: str, key: str | None = None) -> list[BaseTool]:
    """Return `remember`, `forget` and `search_memory` for a user; they work with and without an event loop.

    Args:
        url: such as `http://127.0.0.1:8000`.
        user: whose memory it is.
        key: an API key or a token.
    """
    clients = Clients(url, user, key)

    def remember(text: str) -> str:
        """Remember a statement about the user, in the user's language, understandable alone."""
        try:
            return _saved(clients.sync.remember(text))
        except ServiceError as error:
            if error.status != _NOT_FOUND:
                return error.detail
        clients.sync.import_lines([_user_line(user)])
        return _saved(clients.sync.remember(text))

    async def aremember(text: str) -> str:
        async with clients.one() as client:
            try:
                return _saved(await client.remember(text))
            except ServiceError as error:
                if error.status != _NOT_FOUND:
                    return error.detail
            await client.import_lines(_each([_user_line(user)]))
            return _saved(await client.remember(text))

    def forget(what: str, keep: str = "", all: bool = False) -> str:
        """Forget what a description names, because the user asks for it.

        If it stands in one sentence with something else, call it again with `keep`, what is to stay of the
        sentence, or with `all`.
        """
        try:
            return clients.sync.forget(what, keep=keep, all=all).summary
        except ServiceError as error:
            return error.detail

    async def aforget(what: str, keep: str = "", all: bool = False) -> str:
        try:
            async with clients.one() as client:
                return (await client.forget(what, keep=keep, all=all)).summary
        except ServiceError as error:
            return error.detail

    def search_memory(query: str) -> str:
        """Search what the user said before and what is remembered of them."""
        try:
            return _shown(clients.sync.recall(query, limit=_MOST_FOUND))
        except ServiceError as error:
            return error.detail

    async def asearch_memory(query: str) -> str:
        try:
            async with clients.one() as client:
                return _shown(await client.recall(query, limit=_MOST_FOUND))
        except ServiceError as error:
            return error.detail

    made: list[tuple[Callable[..., Any], Callable[..., Awaitable[Any]]]] = [
        (remember, aremember),
        (forget, aforget),
        (search_memory, asearch_memory),
    ]
    return [StructuredTool.from_function(each, coroutine) for each, coroutine in made]


def _saved(written: WrittenMemory) -> str:
    return f"Saved: {written.text}"


def _shown(found: list[FoundMemory]) -> str:
    return "\n".join(f"[{each.created_at:%Y-%m-%d}] {each.text}" for each in found) or "Nothing was found."


async def _each(lines: Sequence[str]) -> AsyncIterator[str]:
    for line in lines:
        yield line


def _user_line(user: str) -> str:
    """A user of whom nothing is known yet, as an import takes it."""
    return json.dumps({"kind": "user", "user_id": user, "timezone": "UTC"})
