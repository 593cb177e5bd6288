"""retrieve, over a knowledge base with a document; what is away is left out and named."""

import pytest

from nodes.retrieve import retrieve
from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.knowledge.base import NewBase
from state.conversation import RouteDecision, RouteMethod, each_once
from tests.support.knowledge import a_base, put
from tests.support.turns import runtime, state

pytestmark = pytest.mark.anyio


async def test_the_routed_base_is_searched_with_the_message(services: Services) -> None:
    base = await a_base(services)
    await put(services, base, "leave.md", "# Leave\n\n## Holidays\n\nThirty days of holidays.")
    asked = state(kb_prefix="handbook", message="How many days of holidays?", message_vector=None)
    update = await retrieve(asked, runtime(), knowledge=services.knowledge.search)
    (passage,) = update["retrieval_results"]
    assert (passage["document"], passage["heading"], passage["position"]) == ("leave.md", "Leave > Holidays", 0)
    assert (passage["kb_prefix"], passage["page"], passage["text"]) == (
        "handbook",
        None,
        "Thirty days of holidays.",
    )
    assert update["degraded"] == ["milvus"]


async def test_what_is_degraded_already_is_named_once(services: Services) -> None:
    base = await a_base(services)
    await put(services, base, "leave.md", "Thirty days of holidays.")
    asked = state(kb_prefix="handbook", message="How many days of holidays?", degraded=["milvus"])
    update = await retrieve(asked, runtime(), knowledge=services.knowledge.search)
    assert each_once(asked["degraded"], update["degraded"]) == ["milvus"]


@pytest.mark.parametrize("prefix", [None, "nothing"])
async def test_without_a_base_there_are_no_passages(services: Services, prefix: str | None) -> None:
    update = await retrieve(state(kb_prefix=prefix), runtime(), knowledge=services.knowledge.search)
    assert (update["retrieval_results"], update["degraded"]) == ([], [])


async def test_without_the_database_the_turn_goes_on(services: Services) -> None:
    await services.database.close()
    asked = state(kb_prefix="handbook", message="How many days of holidays?")
    update = await retrieve(asked, runtime(), knowledge=services.knowledge.search)
    assert (update["retrieval_results"], update["degraded"]) == ([], ["knowledge"])


async def test_other_bases_contribute_their_best_passages(services: Services) -> None:
    first = await a_base(services)
    await put(services, first, "leave.md", "# Leave\n\n## Holidays\n\nThirty days of holidays.")
    other = await services.knowledge.bases.create(DEFAULT_TENANT, NewBase("school", "A school"))
    await put(services, other, "year.md", "# Year\n\n## Holidays\n\nThe holidays of the school begin in July.")
    decision = RouteDecision(
        kb_prefix="handbook",
        worker_name="handbook",
        confidence=0.9,
        method="similarity",
        reason="close to its documents",
        also=["school"],
    )
    asked = state(kb_prefix="handbook", route_decision=decision, message="When are the holidays?")
    update = await retrieve(asked, runtime(), knowledge=services.knowledge.search)
    assert [passage["kb_prefix"] for passage in update["retrieval_results"]] == ["handbook", "school"]


@pytest.mark.parametrize(("method", "shown"), [("similarity", 3), ("keywords", 3), ("explicit", 0)])
async def test_a_base_that_probably_answers_shows_its_best_passages_in_any_case(
    services: Services, method: RouteMethod, shown: int
) -> None:
    base = await a_base(services)
    text = "# Pets\n\n" + "\n\n".join(
        f"## {name}\n\nThe vet sees {name.lower()} on Mondays." for name in ("Cats", "Dogs", "Hares", "Parrots")
    )
    await put(services, base, "pets.md", text)
    decision = RouteDecision(
        kb_prefix="handbook", worker_name="handbook", confidence=0.9, method=method, reason="probable"
    )
    message = (
        "My old tomcat walks oddly since Friday and will not eat: whom does one ring on Mondays about that limp?"
    )
    asked = state(kb_prefix="handbook", route_decision=decision, message=message)
    update = await retrieve(asked, runtime(), knowledge=services.knowledge.search)
    assert len(update["retrieval_results"]) == shown
