"""A server of the Model Context Protocol for tests: `python -m tests.support.tool_server [--port PORT]`."""

import argparse
import asyncio
import os
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("notes")
_READS = ToolAnnotations(read_only_hint=True)


def _file() -> Path:
    return Path(os.environ["NOTES"])


@server.tool(annotations=_READS)
def read_notes() -> str:
    """Read all notes."""
    return _file().read_text() if _file().exists() else "There are no notes."


@server.tool()
def write_note(text: str) -> str:
    """Write a note."""
    with _file().open("a") as notes:
        notes.write(f"{text}\n")
    return "Written."


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
