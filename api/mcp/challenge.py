"""The challenge to an unknown caller of `/mcp`: where tokens come from."""

import re

from starlette.datastructures import URL, Headers
from starlette.types import Scope

MCP_PATH = "/mcp"
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]{1,64}){1,8}")
METADATA_PATH = f"/.well-known/oauth-protected-resource{MCP_PATH}"


def public_address(scope: Scope, path: str) -> URL:
    """The address under which the client reaches a path, below the prefix that a proxy takes off and names."""
    prefix = Headers(scope=scope).get("x-forwarded-prefix", "").rstrip("/")
    if not _PREFIX.fullmatch(prefix):
        prefix = ""
    return URL(scope=scope).replace(path=f"{prefix}{path}", query="")


def challenge(scope: Scope) -> str:
    """The value of `WWW-Authenticate` for a request."""
    if scope["path"] != MCP_PATH:
        return "Bearer"
    address = public_address(scope, METADATA_PATH)
    return f'Bearer resource_metadata="{address}"'
