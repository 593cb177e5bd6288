"""The tools that the model may call. A tool is one module of `services.tools.builtin`."""

import importlib
import inspect
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from langchain_core.tools import BaseTool

from services.tools import builtin


@dataclass(frozen=True)
class RegisteredTool:
    """A tool and its limits. Name, description and arguments are those of the LangChain tool."""

    tool: BaseTool
    timeout_s: float = 10.0

    @cached_property
    def takes_runtime(self) -> bool:
        """Whether the tool asks for the run's identity, in a parameter named `runtime`."""
        function = getattr(self.tool, "coroutine", None) or getattr(self.tool, "func", None)
        return function is not None and "runtime" in inspect.signature(function).parameters

    @property
    def name(self) -> str:
        """The name by which the model calls it."""
        return self.tool.name


class ToolRegistry:
    """All tools, by name."""

    def __init__(self, tools: Sequence[RegisteredTool]) -> None:
        self._tools = {registered.name: registered for registered in tools}

    @classmethod
    def of_builtin_tools(cls) -> "ToolRegistry":
        """Every `TOOL` of the modules in `services.tools.builtin`: adding a module adds a tool."""
        names = sorted(module.name for module in pkgutil.iter_modules(builtin.__path__))
        return cls([importlib.import_module(f"{builtin.__name__}.{name}").TOOL for name in names])

    @property
    def for_model(self) -> list[BaseTool]:
        """The tools as they are offered to the model, always in the same order."""
        return [registered.tool for registered in self._tools.values()]

    def get(self, name: str) -> RegisteredTool | None:
        """The tool of that name; None when there is none, as models invent names."""
        return self._tools.get(name)
