"""HTTP clients that reach a server of tools, and no other address in the operator's network."""

from typing import Any

import httpx2

from services.platform.guarded_http import GuardedTransport
from services.tools.mcp_config import McpServerConfig


def guarded(config: McpServerConfig) -> GuardedTransport:
    """Return the transport to a server of tools, and to the authorization server that is named for it."""
    named = (config.url, config.oauth.issuer if config.oauth else None)
    return GuardedTransport(filter(None, named))


def client_for(config: McpServerConfig, auth: Any) -> httpx2.AsyncClient:
    """Return a client that signs in at a server of tools."""
    headers = {name: value.get_secret_value() for name, value in config.headers.items()}
    return httpx2.AsyncClient(headers=headers, timeout=config.timeout_s, auth=auth, transport=guarded(config))
