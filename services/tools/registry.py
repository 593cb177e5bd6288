"""The tools that the model may call. A tool is one module of `services.tools.builtin`."""

import importlib
import json
import pkgutil
from collections.abc import Callable, Collection, Sequence
from functools import cached_property

from langchain_core.tools import BaseTool

from services.errors import ConfigurationError
from services.llm.tool_schemas import tool_schema
from services.tools import builtin
from services.tools.aliases import ALIASES
from services.tools.quick import calls_in
from services.tools.tool import RegisteredTool, ToolServices
from state.conversation import QuickCall
from state.prompt import Feature


class ToolRegistry:
    """All tools, by priority and name."""

    def __init__(self, tools: Sequence[RegisteredTool], more: Collection[str] = ()) -> None:
        """Take the tools; models are offered the default ones and those named in `more`."""
        self._more = frozenset(more)
        ordered = sorted(tools, key=lambda registered: (registered.priority, registered.name))
        self._tools = {registered.name: registered for registered in ordered}
        self._with: dict[frozenset[str], ToolRegistry] = {}
        self._quick = [(registered.name, registered.quick) for registered in ordered if registered.quick]

    @classmethod
    def of_builtin_tools(cls, services: ToolServices, more: Collection[str] = ()) -> "ToolRegistry":
        """Every `TOOL` of the modules in `services.tools.builtin`: adding a module adds a tool.

        Raises:
            ConfigurationError: `more` names a tool that does not exist, or is switched off.
        """
        names = sorted(module.name for module in pkgutil.iter_modules(builtin.__path__))
        found = [importlib.import_module(f"{builtin.__name__}.{name}").TOOL for name in names]
        made = [tool if isinstance(tool, RegisteredTool) else tool(services) for tool in found]
        there = [tool for tool in made if tool is not None]
        if unknown := sorted(set(more) - {tool.name for tool in there}):
            raise ConfigurationError(f"ANAMNESIS_TOOLS_OFFERED names {', '.join(unknown)}: there is no such tool.")
        return cls(there, more)

    def with_features(self, on: Collection[Feature], *, temporary: bool = False) -> "ToolRegistry":
        """The tools of the enabled features; in a temporary turn, none that changes memory."""
        kept = [
            registered
            for registered in self._tools.values()
            if registered.feature in (None, *on) and not (temporary and registered.alone)
        ]
        if len(kept) == len(self._tools):
            return self
        names = frozenset(registered.name for registered in kept)
        if names not in self._with:
            self._with[names] = ToolRegistry(kept, self._more)
        return self._with[names]

    @property
    def for_model(self) -> list[BaseTool]:
        """The tools offered to the model, always in the same order."""
        return [
            registered.tool
            for registered in self._tools.values()
            if registered.offered or registered.name in self._more
        ]

    @cached_property
    def described(self) -> str:
        """The tools as the model reads them, for counting tokens."""
        return json.dumps([tool_schema(tool) for tool in self.for_model], ensure_ascii=False)

    def get(self, name: str) -> RegisteredTool | None:
        """The tool with that name, or one of its other names; None: models invent names."""
        return self._tools.get(ALIASES[name][0] if name in ALIASES else name)

    def quick_calls(self, message: str, besides: Callable[[str], bool] = lambda _: False) -> list[QuickCall]:
        """Calls that a message asks for so plainly that no model has to decide; empty for most messages.

        `besides` knows sentences that are answered otherwise, so that they may stand beside such questions.
        """
        asked = calls_in(message, self._quick, besides) if self._quick else []
        return [
            QuickCall(id=f"quick_{number}", name=each.name, arguments=each.arguments)
            for number, each in enumerate(asked, 1)
        ]
