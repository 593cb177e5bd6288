"""`promise`: the model promises to come back to something at a time, lists, moves and settles these."""

from typing import Annotated, Literal
from uuid import UUID

from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from services.errors import AnamnesisError, InvalidInput
from services.memory.core.blocks import Owner
from services.memory.operations import Trigger
from services.memory.reading.trust import rests_on_user
from services.promises.promise import Promise, quote_of
from services.promises.promises import NewPromise, Promises
from services.tools.tool import RegisteredTool, ToolServices, service_tool
from state.turn import OpenTurn

What = Annotated[str, Field(description="What about")]
When = Annotated[str, Field(description="Their words: Monday at nine, after the exam; quiet: 22:00-07:00, always")]
Which = Annotated[str, Field(description="Id of one to change")]
State = Literal["", "done", "cancelled", "quiet"]
_STATES = {"done": "kept", "cancelled": "cancelled"}
_SHOWN = 30


def make_tool(services: ToolServices) -> RegisteredTool | None:
    """Make the tool, if promises are kept."""
    promises = services.promises
    if promises is None:
        return None

    @service_tool
    async def promise(
        runtime: ToolRuntime[OpenTurn],
        text: What = "",
        when: When = "",
        id: Which = "",
        state: State = "",
    ) -> str:
        """Remind or ask the user later, if they want it; without arguments, list your promises."""
        turn = runtime.context
        owner = Owner.of_turn(turn)
        try:
            if not any(each.strip() for each in (text, when, id)):
                listed = await promises.list(owner, state="open", visible=True, limit=_SHOWN)
                return "\n".join(map(_line, listed)) or "Nothing is promised."
            if turn.speaker or (any(turn.read.foreign) and not rests_on_user(text or when, turn.read)):
                raise ToolException("Nothing was promised: these are not the user's own words. Ask them first.")
            if state == "quiet":
                await promises.quiet.set(owner, when.strip(), Trigger.of_turn(turn, "model"))
                return f"Nothing is said unasked: {when.strip()}."
            if id.strip():
                return await _changed(promises, turn, id.strip(), text, when, state)
            if not (text.strip() and when.strip()):
                raise ToolException("Nothing was promised: both text and when are needed.")
            new = NewPromise(
                text=text,
                when=when,
                timezone=turn.timezone,
                conversation_id=turn.conversation_id,
                message_id=turn.user_message_id,
                quote=quote_of(turn.message, when),
                asked_by="offer" if any(turn.read.agreed) else "user",
            )
            made, _ = await promises.make(owner, new, Trigger.of_turn(turn, "model"), turn.now)
        except InvalidInput as error:
            raise ToolException(f"Nothing was promised: {error.field}: {error.message}.") from error
        except AnamnesisError as error:
            raise ToolException(f"Nothing was promised: {error.message}") from error
        return f"Promised. {_line(made)}"

    return RegisteredTool(promise, timeout_s=5.0, alone=True)


async def _changed(promises: Promises, turn: OpenTurn, promise_id: str, text: str, when: str, state: str) -> str:
    try:
        which = UUID(promise_id)
    except ValueError as error:
        raise ToolException(f"There is no promise {promise_id}.") from error
    changed = await promises.change(
        Owner.of_turn(turn),
        which,
        Trigger.of_turn(turn, "model"),
        text=text.strip() or None,
        when=when.strip() or None,
        state=_STATES.get(state),
        now=turn.now,
    )
    return f"Changed. {_line(changed)}"


def _line(promise: Promise) -> str:
    """Return a promise on one line, as the model reads it."""
    again = f" and again ({promise.said})" if promise.repeats and promise.state in {"open", "due"} else ""
    moment = f"{promise.when:%a %Y-%m-%d %H:%M} ({promise.timezone}){again}"
    return f"{moment}, {promise.state}: {promise.text} [{promise.id}]"


TOOL = make_tool
