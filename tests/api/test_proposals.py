"""Changes of memory that are not in the user's own words wait, and the user settles each of them once."""

from uuid import UUID

import httpx

from services.bootstrap import Services
from services.memory.core.blocks import Owner
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from tests.support.turns import exchange

PROPOSALS = "/api/v1/users/u-1/memory-proposals"


async def _proposed(services: Services, *texts: str, kind: str = "remember") -> list[UUID]:
    turn = await exchange(services.turns, "I am allergic to peanuts.", "Noted.")
    owner = Owner(turn.tenant_id, turn.user_id, turn.expert_id)
    trigger = Trigger("model", turn.user_message_id, turn.conversation_id, turn.turn_id)
    request = ChangeRequest(owner, turn.conversation_id, turn.user_message_id, trigger)
    assert kind in ("remember", "forget")
    return [
        await services.memory.proposals.add(request, "forget" if kind == "forget" else "remember", text)
        for text in texts
    ]


async def test_an_accepted_proposal_is_carried_out_and_a_rejected_one_is_not(
    services: Services, client: httpx.AsyncClient
) -> None:
    wanted, unwanted = await _proposed(services, "Prefers window seats.", "Trusts every link.")
    listed = (await client.get(PROPOSALS)).json()["items"]
    assert [(each["text"], each["kind"], each["expert"]) for each in listed] == [
        ("Trusts every link.", "remember", "default"),
        ("Prefers window seats.", "remember", "default"),
    ]
    accepted = await client.post(f"{PROPOSALS}/{wanted}", json={"accept": True})
    assert (accepted.status_code, accepted.json()["change"]["kind"]) == (200, "remember")
    rejected = await client.post(f"{PROPOSALS}/{unwanted}", json={"accept": False})
    assert rejected.json() == {"accepted": False, "change": None}
    assert (await client.get(PROPOSALS)).json()["items"] == []
    (section,) = (await client.get("/api/v1/users/u-1/core-memory")).json()["items"]
    assert "window seats" in str(section["content"])
    assert "link" not in str(section["content"])
    for proposal in (wanted, unwanted):
        assert (await client.post(f"{PROPOSALS}/{proposal}", json={"accept": True})).status_code == 409


async def test_proposals_of_others_and_none_at_all_are_not_found(
    services: Services, client: httpx.AsyncClient
) -> None:
    (proposal,) = await _proposed(services, "Prefers window seats.")
    await exchange(services.turns, "Hello", "Hi", user_id="u-2")
    for path in (f"{PROPOSALS.replace('u-1', 'u-2')}/{proposal}", f"{PROPOSALS}/{UUID(int=7)}"):
        assert (await client.post(path, json={"accept": True})).status_code == 404
    assert (await client.get(PROPOSALS.replace("u-1", "u-9"))).status_code == 404
    assert (await client.get(PROPOSALS.replace("u-1", "u-2"))).json()["items"] == []
    assert (await client.post(f"{PROPOSALS}/{proposal}", json={})).status_code == 422
