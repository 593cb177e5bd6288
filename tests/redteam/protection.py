"""Services without their protection: shows that the red team notices what it keeps out."""

from services.bootstrap import Services
from services.tools.executor import ToolExecutor
from services.tools.registry import ToolRegistry
from services.tools.tool import ToolServices


def without_proposals(services: Services) -> Services:
    """Return the services with tools that change memory at once, whosever words ask for it."""
    memory, settings = services.memory, services.settings
    tools = ToolRegistry.of_builtin_tools(
        ToolServices(core_memory=memory.core, changes=memory.changes, archive=memory.archive),
        settings.tools_offered,
    )
    return services.with_others(tools=tools, tool_executor=ToolExecutor(tools))
