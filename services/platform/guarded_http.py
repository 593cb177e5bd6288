"""Requests to addresses that strangers name: only to origins that the operator trusts, and to public addresses.

Strangers are a server of tools, which names its authorization server, and a tenant, who names webhooks. An address
within the operator's network is asked only if the configuration names its origin.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable

import httpx2

from services.errors import Unavailable
from services.platform.proxies import proxy_for

_PORTS = {"http": 80, "https": 443}
_WITHIN_S = 5.0
_Origin = tuple[str, str, int | None]


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests to trusted origins and public addresses; a name is asked at the address that was checked."""

    def __init__(self, trusted: Iterable[str]) -> None:
        """Take addresses whose origins may be within the operator's network."""
        self._own = frozenset(_origin(httpx2.URL(each)) for each in trusted)
        self._direct = httpx2.AsyncHTTPTransport()
        self._proxied: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises `Unavailable` if it leads to an address that is not allowed."""
        proxy = proxy_for(str(request.url))
        through = self._direct if proxy is None else self._through(proxy)
        if _origin(request.url) in self._own:
            return await through.handle_async_request(request)
        found = await self.check(request.url, resolves_elsewhere=proxy is not None)
        if proxy is None and found:
            request = httpx2.Request(
                request.method,
                request.url.copy_with(host=found),
                headers=request.headers,  # `Host` stays as it is
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.host},
            )
        return await through.handle_async_request(request)

    async def check(self, url: httpx2.URL, *, resolves_elsewhere: bool = False) -> str:
        """Return the address at which a name is asked; empty if only a proxy knows it. Raises `Unavailable` if
        it is no web address, or not a public one."""
        if url.scheme not in _PORTS or not url.host:
            raise Unavailable(f"it sends the service to {url.scheme}:, which is no address of the web"[:200])
        if _origin(url) in self._own:
            return url.host
        try:
            async with asyncio.timeout(_WITHIN_S):
                found = await asyncio.get_running_loop().getaddrinfo(
                    url.host, url.port or _PORTS[url.scheme], type=socket.SOCK_STREAM
                )
        except (OSError, UnicodeError) as error:
            if resolves_elsewhere and not isinstance(error, UnicodeError):
                return ""
            raise Unavailable(f"it sends the service to {url.host}, which has no address"[:200]) from None
        addresses = [str(each[4][0]) for each in found]
        if not _are_public(addresses):
            raise Unavailable(f"it sends the service to {url.host}, which is no public address"[:200])
        return addresses[0]

    async def aclose(self) -> None:
        """Close the connections."""
        for each in (self._direct, *self._proxied.values()):
            await each.aclose()

    def _through(self, proxy: str) -> httpx2.AsyncHTTPTransport:
        if proxy not in self._proxied:
            self._proxied[proxy] = httpx2.AsyncHTTPTransport(proxy=proxy)
        return self._proxied[proxy]


def _origin(url: httpx2.URL) -> _Origin:
    return url.scheme, url.host, url.port or _PORTS.get(url.scheme)


def _are_public(addresses: Iterable[str]) -> bool:
    found = [ipaddress.ip_address(each.partition("%")[0]) for each in addresses]
    return bool(found) and all(_is_public(each) for each in found)


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is not None:
            return _is_public(inner) and not address.is_reserved
        if address in _TRANSLATED:  # an IPv4 address behind a translator
            return _is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return address.is_global and not address.is_multicast


_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
