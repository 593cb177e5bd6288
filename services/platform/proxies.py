"""Proxies in the environment: none is used for this machine, and an unusable one is refused.

Every HTTP client of the service, and gRPC, reads the usual variables by itself; this module gives them values that
each accepts.
"""

import ipaddress
import os
from collections.abc import MutableMapping
from contextlib import suppress
from urllib.parse import urlsplit
from urllib.request import getproxies_environment
from urllib.request import proxy_bypass_environment as is_spared  # type: ignore[attr-defined]

from services.errors import ConfigurationError

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
OPENAI = "https://api.openai.com/v1"
"""Address that the OpenAI SDK uses if none is set."""
_SCHEMES = frozenset({"http", "https", "socks5", "socks5h"})


def prepare_proxies(environment: MutableMapping[str, str] = os.environ) -> None:
    """Change the variables to values that all clients accept, at the beginning of a process. Raises
    `ConfigurationError` if a variable names a kind of proxy that no client can use."""
    found = False
    for name in (spelling for variable in _VARIABLES for spelling in (variable, variable.lower())):
        if not (value := environment.get(name, "").strip()):
            continue
        found = True
        scheme, separator, rest = value.partition("://")
        if separator and scheme.lower() == "socks":  # the form that desktops write
            scheme = "socks5"
        if separator and scheme.lower() not in _SCHEMES:
            raise ConfigurationError(
                f"{name}={shown(value)} cannot be used: proxies are http, https, socks5 or socks5h. Name another "
                f"one, or unset the variable for this program (env -u {name} …)."
            )
        environment[name] = f"{scheme.lower()}://{rest}" if separator else value
    if found:
        _spare_this_machine(environment)


def _spare_this_machine(environment: MutableMapping[str, str]) -> None:
    given = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    names = [name.strip() for name in given.split(",") if name.strip()]
    names += [name for name in _THIS_MACHINE if name not in names]
    environment["no_proxy"] = environment["NO_PROXY"] = ",".join(names)


def is_loopback(address: str) -> bool:
    """Return whether an address, or a host's name, is this machine's own."""
    try:
        host = (urlsplit(address).hostname or "") if "://" in address else address
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_nearby(address: str) -> bool:
    """Return whether an address is this machine's, or one of a network of one's own."""
    host = urlsplit(address).hostname or ""
    with suppress(ValueError):
        return is_loopback(host) or ipaddress.ip_address(host).is_private
    return bool(host) and ("." not in host or host.endswith((".local", ".internal", ".lan")))


def proxy_for(url: str) -> str | None:
    """Return the proxy that requests to the address use."""
    parts, proxies = urlsplit(url), getproxies_environment()
    if is_loopback(url) or is_spared(parts.netloc.rpartition("@")[2], proxies):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def through(url: str) -> str:
    """Return words about the proxy for the address; empty if there is none."""
    proxy = proxy_for(url)
    return f" (asked through the proxy {shown(proxy)} of the environment)" if proxy else ""


def shown(proxy: str) -> str:
    """Return a proxy's address without its password."""
    scheme, separator, rest = proxy.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
