"""Sends requests to an endpoint's models, with the address and the headers of the SDK's client, made once."""

import asyncio
import ssl
from collections.abc import AsyncIterable, Mapping
from typing import Any

import anyio
import httpx2
import openai

_UNREACHABLE = (httpx2.RequestError, ssl.SSLError, anyio.EndOfStream)


class Sender:
    """Posts bodies that are JSON already.

    The SDK's own methods validate every message of the prompt against its types, which at 60 turns takes more time
    than the rest of a turn. They also build the address and the headers again for every request.
    """

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        """Take whose address, key and headers to send."""
        self._client = client
        self._first: dict[str, httpx2.Request] = {}

    async def post(
        self,
        path: str,
        content: bytes | AsyncIterable[bytes],
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        timeout: float | openai.Timeout | None = None,  # noqa: ASYNC109 — the connection's, between two bytes
    ) -> httpx2.Response:
        """Send a body, and return the response, which is to be read and closed.

        Raises:
            openai.APIStatusError: the endpoint refuses the request.
            openai.APIConnectionError: it cannot be reached, or does not answer in time.
        """
        first = self._first.get(path)
        if first is None:  # in a thread: the headers name the operating system, which is read from disk
            first = self._first[path] = await asyncio.to_thread(self._made, path)
        connections: httpx2.AsyncClient = self._client._client
        sent = first.headers
        if headers:
            sent = sent.copy()
            sent.update(headers)
        limits = self._client.timeout if timeout is None else timeout
        request = httpx2.Request(
            "POST",
            first.url.copy_merge_params(query) if query else first.url,
            headers=sent,
            cookies=connections.cookies,
            content=content,
            extensions={"timeout": httpx2.Timeout(limits).as_dict()},
        )
        try:
            response = await connections.send(request, stream=True)
        except httpx2.TimeoutException as error:
            raise openai.APITimeoutError(request=request) from error
        except _UNREACHABLE as error:
            raise openai.APIConnectionError(request=request) from error
        if not response.is_success:
            await response.aread()
            raise self._client._make_status_error_from_response(response)
        return response

    def _made(self, path: str) -> httpx2.Request:
        """Make a request without a body."""
        client = self._client
        headers = {**client.auth_headers, **client.default_headers}
        given = {name: value for name, value in headers.items() if isinstance(value, str)}
        url = client.base_url.copy_with(raw_path=client.base_url.raw_path + path.lstrip("/").encode())
        made: httpx2.Request = client._client.build_request("POST", url, headers=given)
        del made.headers["Content-Length"]
        return made
