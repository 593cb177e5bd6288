"""Every process drops what it holds in memory of a user who has something forgotten, or is erased."""

from datetime import UTC, datetime

import httpx
import pytest

from services.bootstrap import Services, open_services
from services.engines import Engines
from services.memory.core.blocks import Owner
from services.memory.episodes.episode import Scope
from services.platform.settings import Settings
from tests.support.application import running_turns
from tests.support.jobs import until
from tests.support.retracting import WHOLE
from tests.support.turns import exchange, owner_of

pytestmark = [pytest.mark.indexed, pytest.mark.untraced]


async def _recall(services: Services, owner: Owner) -> int:
    """Recall, so that there is a working set; return its bytes."""
    await services.memory.archive.search(Scope.of(owner), "Hamburg", top_k=3, now=datetime.now(UTC))
    await services.memory.working_sets.settled()
    return services.memory.working_sets.nbytes


async def test_other_processes_drop_what_they_hold_of_the_user(
    services: Services, settings: Settings, engines: Engines, client: httpx.AsyncClient
) -> None:
    turn = await exchange(services.turns, WHOLE, "Noted.")
    owner = owner_of(turn)
    await services.memory.indexing.index_waiting()
    async with open_services(settings, engines) as elsewhere, running_turns(elsewhere):
        assert await _recall(elsewhere, owner)
        body = {"message_id": str(turn.user_message_id)}
        assert (await client.post("/api/v1/users/u-1/erasures", json=body)).status_code == 200

        async def dropped() -> bool:
            return elsewhere.memory.working_sets.nbytes == 0

        await until(dropped, seconds=20)
