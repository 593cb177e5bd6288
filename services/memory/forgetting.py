"""Forgetting by description, outside of a turn: what a person asks for through the API or a command."""

from uuid import uuid4

from services.llm.language import language_of
from services.memory.blocks import Owner
from services.memory.operations import Trigger
from services.memory.resolution import Asking, Resolution
from services.memory.retraction import Retraction
from services.platform.postgres import Database
from state.memory import MemoryChange, Recognised


class Forgetting:
    """Removes what is described from core memory and from recall; messages stay in their conversations."""

    def __init__(self, database: Database, resolution: Resolution, retraction: Retraction) -> None:
        self._database = database
        self._resolution = resolution
        self._retraction = retraction

    async def forget(self, owner: Owner, what: str, trigger: Trigger) -> MemoryChange:
        """Forget what a text names; without `operation_id` in the result nothing matched, and nothing changed.

        Raises:
            NotFound: the owner was erased.
            DatabaseUnavailable: the database does not answer.
        """
        # No message asks for it: ids that no message has.
        asking = Asking(owner, uuid4(), uuid4(), what, language_of([what]), Recognised())
        planned = await self._resolution.named(asking, "forget", what.replace("\x00", ""))
        if planned["change"]["operation_id"]:
            async with self._database.tenant(owner.tenant_id) as connection:
                await self._retraction.commit(connection, owner, planned, trigger)
        return planned["change"]
