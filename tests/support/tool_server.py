"""A server of the Model Context Protocol for tests: `python -m tests.support.tool_server [--port PORT]`.

With the variable ISSUER it only admits holders of a token of that authorization server.
"""

import argparse
import asyncio
import os
from pathlib import Path

import jwt
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations


class _Tokens:
    """Reads the tokens of the authorization server."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._keys = jwt.PyJWKClient(f"{issuer}/jwks.json")

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            key = await asyncio.to_thread(self._keys.get_signing_key_from_jwt, token)
            claims = jwt.decode(token, key, algorithms=["RS256"], audience="anamnesis", issuer=self._issuer)
        except jwt.PyJWTError:
            return None
        scopes = claims["scope"].split()
        return AccessToken(
            token=token, client_id="any", subject=claims["sub"], scopes=scopes, expires_at=claims["exp"]
        )


def _server() -> MCPServer:
    issuer, port = os.environ.get("ISSUER"), os.environ.get("PORT")
    if issuer is None:
        return MCPServer("notes")
    address = f"http://127.0.0.1:{port}/mcp"
    auth = AuthSettings(issuer_url=issuer, resource_server_url=address, required_scopes=["notes"])
    return MCPServer("notes", token_verifier=_Tokens(issuer), auth=auth)


server = _server()
_READS = ToolAnnotations(read_only_hint=True)


def _file() -> Path:
    return Path(os.environ["NOTES"])


@server.tool(annotations=_READS)
def read_notes() -> str:
    """Read all notes."""
    return _file().read_text() if _file().exists() else "There are no notes."


@server.tool(annotations=_READS)
def whoami() -> str:
    """Whose account it is."""
    token = get_access_token()
    return str(token and token.subject)


@server.tool()
def write_note(text: str) -> str:
    """Write a note."""
    with _file().open("a") as notes:
        notes.write(f"{text}\n")
    return "Written."


@server.tool(annotations=_READS)
def picture() -> list[str | Image]:
    """A text and a picture."""
    return ["A cat.", Image(data=b"png", format="png")]


@server.tool(annotations=_READS)
def long_text(characters: int) -> str:
    """A long text."""
    return "x" * characters


@server.tool(annotations=_READS)
async def slow(seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return "Awake."


@server.tool(annotations=_READS)
def fail() -> str:
    """Fail."""
    raise ToolError("The shelf is empty.")


@server.tool(annotations=_READS)
def die() -> str:
    """End the program."""
    os._exit(1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    port = parser.parse_args().port
    if port:
        server.run("streamable-http", host="127.0.0.1", port=port)
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
