"""A tool and its limits."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from langchain_core.tools import BaseTool

from services.memory.archive import Archive
from services.memory.core import CoreMemory


@dataclass(frozen=True)
class ToolServices:
    """What tools may use. Whose data they touch stands in the run's context, never in a tool's arguments."""

    core_memory: CoreMemory | None = None
    """None = core memory is switched off."""
    archive: Archive | None = None
    """None = episodes are switched off."""


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


MakeTool = Callable[[ToolServices], RegisteredTool | None]
"""Of a tool that works on something of the service; None when that is switched off."""
