"""The challenge to an unknown caller of `/mcp`: where tokens come from."""

from starlette.datastructures import URL
from starlette.types import Scope

MCP_PATH = "/mcp"
METADATA_PATH = f"/.well-known/oauth-protected-resource{MCP_PATH}"


def challenge(scope: Scope) -> str:
    """The value of `WWW-Authenticate` for a request."""
    if scope["path"] != MCP_PATH:
        return "Bearer"
    address = URL(scope=scope).replace(path=METADATA_PATH, query="")
    return f'Bearer resource_metadata="{address}"'
