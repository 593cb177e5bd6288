"""Requests to servers that the operator has configured: limited in time and size, without redirects."""

import asyncio
from collections.abc import Mapping
from typing import Literal

import httpx

_CONNECT_TIMEOUT_S = 2.0
_PLAIN = {"Accept": "application/json", "Accept-Encoding": "identity"}
"""Headers for an uncompressed answer, so that the bytes counted on arrival are its whole size."""

Failure = Literal["unreachable", "slow", "status", "too_large"]


class OutgoingFailed(Exception):
    """A server that did not answer as it should."""

    def __init__(self, failure: Failure, status: int | None = None) -> None:
        super().__init__(failure, status)
        self.failure = failure
        self.status = status


class OutgoingHttp:
    """One client for the process, opened when first used."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def get(
        self,
        url: str,
        params: Mapping[str, str],
        *,
        within_s: float,
        most_bytes: int,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send one request and return the body. Raises `OutgoingFailed` if there is no answer within
        `within_s`, the status is not 200, or the body is too long."""
        try:
            async with asyncio.timeout(within_s):
                client = await self._opened()
                async with client.stream(
                    "GET", url, params=dict(params), headers={**_PLAIN, **(headers or {})}
                ) as response:
                    if response.status_code != httpx.codes.OK:
                        raise OutgoingFailed("status", response.status_code)
                    body = bytearray()
                    async for chunk in response.aiter_raw():
                        body += chunk
                        if len(body) > most_bytes:
                            raise OutgoingFailed("too_large")
                    return bytes(body)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise OutgoingFailed("slow") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise OutgoingFailed("unreachable") from error

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _opened(self) -> httpx.AsyncClient:
        async with self._opening:
            if self._client is None:  # in a thread, because it reads the system's certificates from disk
                self._client = await asyncio.to_thread(_open)
            return self._client


def _open() -> httpx.AsyncClient:
    # The limit covers the whole request, so reading needs no separate one.
    return httpx.AsyncClient(timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S), follow_redirects=False)
