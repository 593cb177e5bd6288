"""Run the tools that a model or a rule calls: all at once, each with a time limit."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import ValidationError

from services.platform import span_names as names
from services.platform.tracing import mark_failed, span
from services.text.language import Language
from services.tools.aliases import meant
from services.tools.approvals import Approvals
from services.tools.registry import ToolRegistry
from services.tools.tool import NotConnected, RegisteredTool, Settled, WithImages
from state.client_tools import SETTLED, content_with
from state.turn import OpenTurn

log = structlog.get_logger(__name__)

OnEvent = Callable[[str, dict[str, Any]], None]
"""Called with `tool_call` or `tool_result` and its content."""


class ToolExecutor:
    """Runs tool calls. A failure is a result with an error, which the model reads; never a failed turn."""

    def __init__(self, registry: ToolRegistry, approvals: Approvals | None = None) -> None:
        """Take the tools, and what asks users; None = nobody can be asked."""
        self._registry = registry
        self._approvals = approvals

    def changes_memory(self, calls: Sequence[ToolCall]) -> bool:
        return any(map(self._runs_alone, calls))

    async def run(
        self, calls: Sequence[ToolCall], turn: OpenTurn, on_event: OnEvent, *, within_s: float | None = None
    ) -> list[ToolMessage]:
        """Run every call on behalf of a turn, and report when each starts and ends.

        Calls that change what other calls read run first, one after the other; the rest run at the same time. Each
        call has its own time limit, and at most `within_s` seconds.

        Returns:
            One message for each call, in the order of the calls.
        """
        _tell(calls, on_event)
        results: dict[int, ToolMessage] = {}
        for place, call in enumerate(calls):
            if self._runs_alone(call):
                results[place] = await self.report(call, turn, on_event, within_s)
        async with asyncio.TaskGroup() as group:
            tasks = {
                place: group.create_task(self.report(call, turn, on_event, within_s))
                for place, call in enumerate(calls)
                if place not in results
            }
        results |= {place: task.result() for place, task in tasks.items()}
        return [results[place] for place in range(len(calls))]

    def _runs_alone(self, call: ToolCall) -> bool:
        registered = self._registry.get(call["name"])
        return registered is not None and registered.alone

    async def report(
        self, call: ToolCall, turn: OpenTurn, on_event: OnEvent, within_s: float | None = None
    ) -> ToolMessage:
        """Run one call and report its end."""
        begun = time.perf_counter()
        about = {names.OPERATION: "execute_tool", names.TOOL: call["name"], names.TOOL_CALL: call["id"]}
        registered = (await self._registry.of_user(turn.tenant_id, turn.user_id)).get(call["name"])
        more: dict[str, Any] = {}
        with span(f"execute_tool {call['name']}", about) as current:
            if registered is None or not (registered.experts is None or turn.expert in registered.experts):
                text, ok = f"There is no tool named {call['name']}.", False
            elif refused := await self._refused(registered, call, turn, on_event):
                text, ok = refused, False
            else:
                try:
                    text, ok = await _run(registered, call, turn, within_s)
                except NotConnected as error:
                    text, ok, more = str(error), False, {"connect": error.connect}
            if not ok:
                mark_failed(current, "tool_error")
        duration = round((time.perf_counter() - begun) * 1000, 1)
        result = {"result": text} if ok else {"error": text}
        on_event(
            "tool_result",
            {"id": call["id"], "name": call["name"], "ok": ok, **result, **more, "duration_ms": duration},
        )
        return ToolMessage(
            content=content_with(text, text.images if isinstance(text, WithImages) else ()),
            tool_call_id=call["id"] or "",
            name=call["name"],
            status="success" if ok else "error",
            artifact=SETTLED if isinstance(text, Settled) else None,
        )

    async def _refused(
        self, registered: RegisteredTool, call: ToolCall, turn: OpenTurn, on_event: OnEvent
    ) -> str | None:
        """Return why a call is not made; None = it may be made, and the user agrees where that is needed."""
        if not turn.stored and registered.alone:
            return "This conversation is temporary: memory stays as it is."
        if not registered.asks:
            return None
        if self._approvals is None or not turn.input.get("approvals"):
            return f"{call['name']} needs the user's agreement, and this client cannot ask for it."
        match await self._approvals.ask(turn.turn_id, call, on_event):
            case True:
                return None
            case False:
                return f"The user does not agree to {call['name']}; do not try it again."
            case None:
                return f"The user has not answered whether {call['name']} may run; it was not run."


async def _run(
    registered: RegisteredTool, call: ToolCall, turn: OpenTurn, within_s: float | None
) -> tuple[str, bool]:
    # A value that the model sent under that name never reaches a tool: identity comes from the run.
    given = meant(call, turn.timezone)["args"]
    arguments = {name: value for name, value in given.items() if name != "runtime"}
    if registered.takes_runtime:
        arguments["runtime"] = ToolRuntime(
            state={}, context=turn, config={}, stream_writer=lambda _: None, tool_call_id=call["id"], store=None
        )
    seconds = registered.timeout_s if within_s is None else min(registered.timeout_s, within_s)
    try:
        async with asyncio.timeout(seconds) as limit:
            said = await registered.tool.ainvoke(arguments)
            return said if isinstance(said, WithImages | Settled) else str(said), True
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        return f"The arguments are wrong: {problems}", False
    except NotConnected:
        raise
    except ToolException as error:
        return str(error), False
    except Exception:  # a tool's defect must not cost the user the answer
        if limit.expired():
            return f"{call['name']} did not answer within {seconds:.3g} s.", False
        log.error("tool failed", tool=call["name"], exc_info=turn.stored)
        return f"{call['name']} failed.", False


def _tell(calls: Sequence[ToolCall], on_event: OnEvent) -> None:
    for call in calls:
        on_event("tool_call", {"id": call["id"], "name": call["name"], "arguments": call["args"]})


Say = Callable[[list[AnyMessage]], Awaitable[str]]
"""Lets the model continue these messages; returns the text that it adds."""

_BEGIN = {
    "en": "Begin your answer now, shortly, with what you have. These are still under way: {pending}. "
    "Do not speak of them yet, not even that they are missing: you will go on when they are there.",
    "zh": "现在就用已有的内容开始回答，要简短。这些结果还没有返回：{pending}。先不要提它们，也不要说还缺什么："
    "等它们到了你再接着说。",
}
_GO_ON = {
    "en": "Go on with the answer that you have begun, with the results that have come since. What you have said "
    "is shown to the user already: do not repeat it, and do not greet again.",
    "zh": "请用新返回的结果接着你已经开始的回答往下说。前面的内容用户已经看到：不要重复，也不要再打招呼。",
}


async def compose(
    executor: ToolExecutor,
    calls: Sequence[ToolCall],
    turn: OpenTurn,
    on_event: OnEvent,
    *,
    say: Say,
    language: Language,
    begin_at_once: bool = False,
) -> list[AnyMessage]:
    """Run the calls, and let the model speak about the first results while others are still running.

    With `begin_at_once` the model speaks before any result, because the prompt already answers a part of the
    question.

    Returns:
        The calls, their results and what was said, in the order in which they happened. The model has not spoken
        of the last results yet.
    """
    waiting = {call["id"] or "": call for call in calls}
    messages: list[AnyMessage] = []
    said = ""
    ended: asyncio.Queue[ToolMessage] = asyncio.Queue()

    async def run(call: ToolCall) -> None:
        ended.put_nowait(await executor.report(call, turn, on_event))

    _tell(calls, on_event)
    try:
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(run(call))
            if begin_at_once:
                said = await say([SystemMessage(_BEGIN[language].format(pending=_listed(waiting)))])
            while True:
                results = [await ended.get()]
                while not ended.empty():
                    results.append(ended.get_nowait())
                messages += [_called(said, results, waiting), *results]
                if said:
                    messages.append(SystemMessage(_GO_ON[language]))
                if not waiting:
                    return messages
                begin = SystemMessage(_BEGIN[language].format(pending=_listed(waiting)))
                said = await say([*messages, begin])
    except ExceptionGroup as failed:  # tools raise nothing, so it is what the model raised
        raise failed.exceptions[0] from None


def _called(said: str, results: Sequence[ToolMessage], waiting: dict[str, ToolCall]) -> AIMessage:
    """Return the finished calls as messages, as if the model had just made them after its text so far."""
    return AIMessage(said, tool_calls=[waiting.pop(result.tool_call_id) for result in results])


def _listed(calls: dict[str, ToolCall]) -> str:
    return ", ".join(f"{call['name']}({', '.join(map(str, call['args'].values()))})" for call in calls.values())
