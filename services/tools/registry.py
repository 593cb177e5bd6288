"""Tools that the model may call: modules of `services.tools.builtin`, and what packages and servers add."""

import importlib
import json
import pkgutil
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.metadata import entry_points
from uuid import UUID

import structlog
from langchain_core.tools import BaseTool

from services.errors import ConfigurationError
from services.llm.request_form import tool_schema
from services.tools import builtin
from services.tools.aliases import ALIASES
from services.tools.tool import RegisteredTool, ToolServices, calls_in
from state.conversation import QuickCall
from state.prompt import Feature

ENTRY_POINTS = "anamnesis.tools"
"""Group of the entry points by which packages add tools."""

ToolsOfUser = Callable[[UUID, UUID], Awaitable[Sequence[RegisteredTool]]]
"""Gives the tools of a user's own account, by tenant and user."""

log = structlog.get_logger(__name__)


class ToolRegistry:
    """All tools, by priority and name."""

    def __init__(self, tools: Sequence[RegisteredTool], more: Collection[str] = ()) -> None:
        """Take the tools; models are offered the default ones and those named in `more`."""
        self._more = frozenset(more)
        ordered = sorted(tools, key=lambda registered: (registered.priority, registered.name))
        self._tools = {registered.name: registered for registered in ordered}
        self._with: dict[tuple[frozenset[str], bool], ToolRegistry] = {}
        self._accounts: dict[str, ToolsOfUser] = {}
        self._sources: dict[str, list[str]] = {}
        self._quick = [(registered.name, registered.quick) for registered in ordered if registered.quick]

    @classmethod
    def of_builtin_tools(cls, services: ToolServices, more: Collection[str] = ()) -> "ToolRegistry":
        """Every `TOOL` of the modules in `services.tools.builtin`, and the entry points of installed packages.
        Raises `ConfigurationError` if `more` names a tool that does not exist, or is switched off; or an entry
        point does not load, or is no tool."""
        names = sorted(module.name for module in pkgutil.iter_modules(builtin.__path__))
        found = [importlib.import_module(f"{builtin.__name__}.{name}").TOOL for name in names]
        made = [tool if isinstance(tool, RegisteredTool) else tool(services) for tool in found]
        there = [tool for tool in (*made, *_installed(services)) if tool is not None]
        if twice := [name for name, count in Counter(tool.name for tool in there).items() if count > 1]:
            raise ConfigurationError(
                f"Several tools are named {', '.join(twice)}; models could not tell them apart."
            )
        if unknown := sorted(set(more) - {tool.name for tool in there}):
            raise ConfigurationError(f"ANAMNESIS_TOOLS_OFFERED names {', '.join(unknown)}: there is no such tool.")
        return cls(there, more)

    def put(self, source: str, tools: Sequence[RegisteredTool]) -> None:
        """Replace the tools of a source. A name that another source uses already stays with that source."""
        own = {name: each for name, each in self._tools.items() if name not in self._sources.get(source, ())}
        new = [each for each in tools if each.name not in own]
        for each in tools:
            if each.name in own:
                log.warning("a tool is left out: there is one of its name", tool=each.name, source=source)
        self._sources[source] = [each.name for each in new]
        ordered = sorted([*own.values(), *new], key=lambda registered: (registered.priority, registered.name))
        self._tools = {registered.name: registered for registered in ordered}
        self._with = {}
        self.__dict__.pop("described", None)

    def put_accounts(self, source: str, tools_of: ToolsOfUser) -> None:
        """Take a source whose tools depend on the account that a user has there."""
        self._accounts[source] = tools_of

    async def of_user(self, tenant_id: UUID, user_id: UUID) -> "ToolRegistry":
        """Return these tools with those of the user's own accounts, and of nobody else's."""
        own: list[RegisteredTool] = []
        for source, tools_of in self._accounts.items():
            for each in await tools_of(tenant_id, user_id):
                if each.name in self._tools or any(each.name == other.name for other in own):
                    log.warning("a tool is left out: there is one of its name", tool=each.name, source=source)
                else:
                    own.append(each)
        return ToolRegistry([*self._tools.values(), *own], self._more) if own else self

    def with_features(
        self, on: Collection[Feature], *, temporary: bool = False, expert: str = ""
    ) -> "ToolRegistry":
        """The tools of the enabled features and of an expert; in a temporary turn, none that changes memory."""
        kept = [
            registered
            for registered in self._tools.values()
            if registered.feature in (None, *on)
            and not (temporary and registered.alone)
            and (registered.experts is None or expert in registered.experts)
        ]
        differ = "memory_filing" not in on and any(registered.without_filing for registered in kept)
        if len(kept) == len(self._tools) and not differ:
            return self
        key = frozenset(registered.name for registered in kept), differ
        if key not in self._with:
            if differ:
                kept = [replace(each, tool=each.without_filing or each.tool) for each in kept]
            self._with[key] = ToolRegistry(kept, self._more)
        return self._with[key]

    @property
    def for_model(self) -> list[BaseTool]:
        """Return the tools that are offered to the model, always in the same order."""
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
        """Return the tool with that name or alias; None if there is none, since models invent names."""
        return self._tools.get(ALIASES[name][0] if name in ALIASES else name)

    def quick_calls(self, message: str, besides: Callable[[str], bool] = lambda _: False) -> list[QuickCall]:
        """Return the calls that a message asks for so plainly that no model has to decide; empty for most
        messages.

        `besides` recognises sentences that are answered in another way and may stand beside such questions.
        """
        asked = calls_in(message, self._quick, besides) if self._quick else []
        return [
            QuickCall(id=f"quick_{number}", name=name, arguments=arguments)
            for number, (name, arguments) in enumerate(asked, 1)
        ]


def _installed(services: ToolServices) -> list[RegisteredTool | None]:
    """Return the tools of installed packages: LangChain's, ours, or a function that makes one of the services.
    Raises `ConfigurationError` if one does not load, or is no tool."""
    made: list[RegisteredTool | None] = []
    for each in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            found = each.load()
            if not isinstance(found, RegisteredTool | BaseTool):
                found = found(services)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ConfigurationError(
                f"The entry point {each.name} of {ENTRY_POINTS} does not load: {reason}"
            ) from error
        if isinstance(found, BaseTool):
            found = RegisteredTool(found)
        if not isinstance(found, RegisteredTool | None):
            raise ConfigurationError(f"The entry point {each.name} ({ENTRY_POINTS}) is no tool.")
        made.append(found)
    return made
