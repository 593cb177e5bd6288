"""A tool, its limits, and how a message calls it without a model."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from types import CodeType

from langchain_core.tools import ArgsSchema, BaseTool, ToolException, tool

from services.memory.archive import Archive
from services.memory.changes import Changes
from services.memory.core import CoreMemory
from services.memory.proposals import Proposals
from services.platform.outgoing import OutgoingHttp
from services.tools.quick import QuickMatch
from state.prompt import Feature

USUAL_PRIORITY = 100


class NotConnected(ToolException):
    """The user has no account at the server of a tool, or has to agree again: they can, at an address."""

    def __init__(self, server: str, address: str) -> None:
        super().__init__(
            f"The user's account at {server} is not connected. Ask them to open this address in their browser, to "
            f"agree there, and then to ask again: {address}"
        )
        self.connect = {"server": server, "url": address}


@dataclass(frozen=True)
class ToolServices:
    """Services that tools may use. The run's context says whose data they touch, never a tool's arguments."""

    core_memory: CoreMemory | None = None
    """None = core memory is switched off."""
    changes: Changes | None = None
    """None = memory is switched off."""
    proposals: Proposals | None = None
    """None = changes never wait for the user."""
    archive: Archive | None = None
    """None = episodes are switched off."""
    http: OutgoingHttp | None = None
    """HTTP client for tools that call other servers; None = no such tools."""
    weather_url: str | None = None
    """Base address of an Open-Meteo forecast API; None = no weather."""
    weather_geocoding_url: str | None = None
    """Base address of its geocoding API; None = the forecast address."""


@dataclass(frozen=True)
class RegisteredTool:
    """A tool and its limits. Name, description and arguments are those of the LangChain tool."""

    tool: BaseTool
    timeout_s: float = 10.0
    quick: QuickMatch | None = None
    """Questions that call this tool without a model; None = none."""
    feature: Feature | None = None
    """The feature it belongs to; experts without the feature lack the tool. None = no feature."""
    offered: bool = True
    """Whether models are offered it by default, or only if a setting names it."""
    alone: bool = False
    """Whether it changes memory: other calls of the same step wait for it, as they may read that, and temporary
    turns go without it."""
    experts: frozenset[str] | None = None
    """Names of the experts who have it; None = all."""
    asks: bool = False
    """Whether the user has to agree to each call first."""
    priority: int = USUAL_PRIORITY
    """Lower comes first: in the list that the model is offered, and among the quick calls of a message. Tools of
    one priority stand in the order of their names."""

    @cached_property
    def takes_runtime(self) -> bool:
        """Whether the tool asks for the run's identity, in a parameter named `runtime`."""
        function = getattr(self.tool, "coroutine", None) or getattr(self.tool, "func", None)
        return function is not None and "runtime" in inspect.signature(function).parameters

    @property
    def name(self) -> str:
        """The name by which the model calls it."""
        return self.tool.name


_SCHEMAS: dict[CodeType, ArgsSchema | None] = {}


def service_tool(function: Callable[..., Awaitable[str]]) -> BaseTool:
    """Make a LangChain tool of a function that is defined once for each `ToolServices`.

    Pydantic takes about 10 ms to build a schema of arguments that include a `ToolRuntime`. It is built once per
    process and kept by the function's code, which all its definitions share.
    """
    made = tool(function, args_schema=_SCHEMAS.get(function.__code__))
    _SCHEMAS[function.__code__] = made.args_schema
    return made
