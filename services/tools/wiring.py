"""The tools that models may call, over services."""

from services.memory.wiring import Memory
from services.platform.outgoing import OutgoingHttp
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.promises.promises import Promises
from services.tools.approvals import Approvals
from services.tools.executor import ToolExecutor
from services.tools.mcp_config import servers_of
from services.tools.mcp_servers import McpServers
from services.tools.registry import ToolRegistry
from services.tools.tool import ToolServices


class Tools:
    """The tools, and what runs them."""

    def __init__(
        self, settings: Settings, database: Database, memory: Memory, promises: Promises, http: OutgoingHttp
    ) -> None:
        """Make them. Raises `ConfigurationError` if a setting names a tool that does not exist, or servers that
        cannot be read."""
        services = ToolServices(
            core_memory=memory.core if settings.memory_core else None,
            changes=memory.changes if settings.memory_core or settings.memory_episodes else None,
            proposals=memory.proposals,
            files=settings.memory_filing and settings.memory_filing_grade != "none",
            undo=memory.undo,
            promises=promises,
            archive=memory.archive if settings.memory_episodes else None,
            http=http,
            weather_url=settings.weather_url,
            weather_geocoding_url=settings.weather_geocoding_url,
        )
        self.registry = ToolRegistry.of_builtin_tools(services, settings.tools_offered)
        self.approvals = Approvals(database, patience_s=settings.tools_approval_s)
        self.executor = ToolExecutor(self.registry, self.approvals)
        self.servers = _servers(settings, database, self.registry)


def _servers(settings: Settings, database: Database, tools: ToolRegistry) -> McpServers:
    configs = servers_of(settings.mcp_servers.get_secret_value() if settings.mcp_servers else None)
    if not configs:
        return McpServers()
    # The SDK takes half a second.
    from services.tools import mcp_accounts, mcp_connection, mcp_user_server  # noqa: PLC0415

    accounts = mcp_accounts.Accounts(database)
    callback = f"http://127.0.0.1:{settings.port}/api/v1/mcp/callback"
    of_users = {
        name: mcp_user_server.UserMcpServer(name, config, tools.put, accounts, callback_url=callback)
        for name, config in configs.items()
        if config.oauth and config.oauth.per_user
    }
    for name, server in of_users.items():
        tools.put_accounts(name, server.tools_of)
    others = [
        mcp_connection.McpServer(name, config, tools.put)
        for name, config in configs.items()
        if name not in of_users
    ]
    return McpServers([*others, *of_users.values()], of_users, accounts)
