from collections.abc import Sequence

from graph.turns.other_processes import recover
from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from state.events import TurnEvent
from state.turn import OpenTurn
from tests.support.turns import new_turn


async def test_a_process_that_was_paused_does_not_end_its_own_turns(services: Services) -> None:
    adopted: list[OpenTurn] = []

    def adopt(turn: OpenTurn, earlier: Sequence[TurnEvent] = ()) -> None:
        adopted.append(turn)

    runs = await services.turns.open(new_turn("one"))
    waits = await services.turns.open(new_turn("two"))
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("UPDATE turns SET lease_expires_at = now() - interval '1 hour'")

    await recover(services, {runs.turn_id, waits.turn_id}, adopt)
    assert (await services.turns.get(DEFAULT_TENANT, runs.turn_id)).status == "running"
    assert not adopted

    await recover(services, set(), adopt)
    ended = await services.turns.get(DEFAULT_TENANT, runs.turn_id)
    assert (ended.status, ended.error and ended.error["code"]) == ("failed", "interrupted")
    assert [turn.turn_id for turn in adopted] == [waits.turn_id]
