"""The MCP server over standard input and output, for one user."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from api.mcp.acting import Acting
from api.mcp.server import make_server
from services.bootstrap import Services
from services.identity.caller import NOBODY_IN_PARTICULAR


async def serve_stdio(services: Services, tenant_id: UUID, user: str) -> None:
    """Serve a user's memory until the input ends."""
    caller = replace(NOBODY_IN_PARTICULAR, tenant_id=tenant_id)

    def acting_of(_: Any) -> Acting:
        return Acting(services, caller, user)

    await make_server(services.settings, acting_of).run_stdio_async()
