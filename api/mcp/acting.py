"""The user for whom an assistant's request acts, and its rights."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from mcp.server.mcpserver.exceptions import ToolError

from api.problems import problem_of
from services.bootstrap import Services
from services.errors import AnamnesisError, NotFound
from services.identity.caller import Caller, Scope
from services.memory.changes import Changes
from services.memory.core.blocks import Owner
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger

NO_USER = (
    "This connection names no user, so there is no memory to use. Send the header X-User-Id (with a key made with "
    "--acts-for-headers), use a key with a default user, or a token."
)
_OFF = "Memory is switched off here (ANAMNESIS_MEMORY_CORE, ANAMNESIS_MEMORY_EPISODES)."


@dataclass(frozen=True)
class Acting:
    """One user, and the caller who acts for them."""

    services: Services
    caller: Caller
    user_id: str | None
    space: str | None = None
    """Space of requests that name none."""

    def user(self, scope: Scope) -> str:
        """Return the user's name, if the caller may do what is asked.

        Raises:
            ToolError: No user is named.
            Forbidden: The caller lacks the scope.
            NotFound: This caller may not know whether there is such a user.
        """
        self.caller.require(scope)
        if self.user_id is None:
            raise ToolError(NO_USER)
        self.caller.act_for(self.user_id)
        return self.user_id

    async def reads(self, expert: str, space: str | None = None) -> Owner | None:
        """Return the owner whose memory is read, within a space or outside of any; None = the user is still
        unknown.

        Raises:
            Forbidden, NotFound, ToolError: As `user`, and if there is no such expert.
        """
        user = self.user("memory:read")
        try:
            await self.services.users.get(self.caller.tenant_id, user)
        except NotFound:
            return None
        core, named = self.services.memory.core, (self.caller.tenant_id, user, expert)
        if space is None and self.space is not None:
            with suppress(NotFound):  # it holds nothing yet
                return await core.owner(*named, self.space)
        return await core.owner(*named, space)

    async def changes(self, expert: str, space: str | None = None) -> tuple[Changes, ChangeRequest]:
        """Return the service that changes memory, and the request for it; a missing user is created.

        Raises:
            Forbidden, NotFound, ToolError: As `reads`, and if memory is switched off.
        """
        user, space = self.user("memory:write"), space or self.space
        settings, tenant_id = self.services.settings, self.caller.tenant_id
        if not (settings.memory_core or settings.memory_episodes):
            raise ToolError(_OFF)
        await self.services.users.make(tenant_id, user)
        owner = await self.services.memory.core.owner(tenant_id, user, expert, space, make_space=space is not None)
        trigger = Trigger("user", details={"by": "mcp"})
        return self.services.memory.changes, ChangeRequest.outside_of_turns(owner, trigger)


@contextmanager
def as_tool_errors() -> Iterator[None]:
    """Convert the service's errors to errors that the assistant reads."""
    try:
        yield
    except AnamnesisError as error:
        raise ToolError(problem_of(error).detail) from error
