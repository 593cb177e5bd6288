"""The MCP server's manager over HTTP: stateless, for the hosts and origins that may ask it."""

from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from api.addresses import LOOPBACK_NAMES
from api.mcp.acting import Acting
from api.mcp.http import MOST_BYTES
from api.mcp.server import make_server
from services.bootstrap import Services


def make_manager(services: Services) -> StreamableHTTPSessionManager:
    """Make the manager of a server over open services."""

    def acting_of(ctx: Context[Any, Any]) -> Acting:
        request: Any = ctx.request_context.request
        return Acting(services, *request.state.acting)

    names = [f"[{name}]" if ":" in name else name for name in LOOPBACK_NAMES | {services.settings.host}]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=not services.authenticator.is_needed,
        allowed_hosts=[host for name in names for host in (name, f"{name}:*")],
        allowed_origins=[
            *(
                f"{scheme}://{host}"
                for name in names
                for host in (name, f"{name}:*")
                for scheme in ("http", "https")
            ),
            *services.settings.trusted_origins,
        ],
    )
    server = make_server(services.settings, acting_of)
    server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        max_request_body_size=MOST_BYTES,
        transport_security=security,
    )
    return server.session_manager
