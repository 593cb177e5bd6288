"""`forget`: the model removes what the user wants forgotten, from core memory and from recall.

The meaning of `keep` and `all` is told in the result that needs it, because every word of a description is billed
with each prompt.
"""

from typing import Annotated

from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from services.errors import AnamnesisError, InvalidInput
from services.text.language import Language, language_of
from services.tools.actor import proposed, request_of
from services.tools.tool import RegisteredTool, ToolServices, service_tool
from state.turn import OpenTurn

What = Annotated[str, Field(description="Words of it")]
Ids = Annotated[list[str] | None, Field(description="Instead of words")]

_AGAIN: dict[Language, str] = {
    "en": " Call forget again: with keep, the sentence that is to stay, in its own words; or with all=true.",
    "zh": "请再次调用 forget：用 keep 给出要留下的那句话（只用原有的词），或用 all=true 整句删除。",
}
_WHICH: dict[Language, str] = {
    "en": " If the user means one of them, call forget again with its words; or, of all, with all=true.",
    "zh": "如果用户指的是其中一条，请用它的原话再次调用 forget；指的是全部，就用 all=true。",
}


def make_tool(services: ToolServices) -> RegisteredTool | None:
    """Make the tool, if memory is on."""
    changes, proposals = services.changes, services.proposals
    if changes is None:
        return None

    @service_tool
    async def forget(
        runtime: ToolRuntime[OpenTurn], what: What = "", ids: Ids = None, keep: str = "", all: bool = False
    ) -> str:
        """Remove from memory what the user asks to forget."""
        request = request_of(runtime)
        named = [each.strip() for each in ids or [] if each.strip()]
        if not named and not what.strip():
            raise ToolException("Name what is to be forgotten, by ids or by words.")
        try:
            is_users = not runtime.context.speaker  # only the user may reject a proposal
            if proposals is not None and is_users and (closed := await proposals.close(request, named)):
                return closed
            texts = await changes.planner.texts(request, what, ids=named)
            if named and not texts and not is_users:
                raise ToolException("Nothing was changed: another participant says this, and not the user.")
            if waits := await proposed(proposals, runtime, "forget", what or ", ".join(named), removes=texts):
                return waits
            change = await changes.forget(request, what, ids=named, takes_all=all, keep=keep)
        except InvalidInput as error:
            raise ToolException(f"Nothing was removed: {error.field} {error.message}.") from error
        except AnamnesisError as error:
            raise ToolException(f"Nothing was removed: {error.message}") from error
        language = request.language or language_of([what])
        again = _AGAIN if change.get("also_said") else _WHICH if change.get("candidates") else {}
        return change["summary"] + again.get(language, "")

    return RegisteredTool(forget, timeout_s=10.0, alone=True)


TOOL = make_tool
