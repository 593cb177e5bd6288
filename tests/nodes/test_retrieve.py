"""retrieve, over a knowledge base with a document; what is away is left out and named."""

import pytest

from nodes.retrieve import retrieve
from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.knowledge.bases import NewBase
from tests.support.knowledge import a_base, put
from tests.support.turns import Written, runtime, state


@pytest.mark.parametrize("prefix", [None, "nothing"])
async def test_without_a_base_there_are_no_passages(services: Services, prefix: str | None) -> None:
    update = await retrieve(state(), runtime(requested_kb_prefix=prefix), knowledge=services.knowledge.search)
    assert (update["retrieval_results"], update["degraded"]) == ([], [])


async def test_without_the_database_the_turn_goes_on(services: Services) -> None:
    await services.database.close()
    asked = runtime(requested_kb_prefix="handbook", message="How many days of holidays?")
    update = await retrieve(state(), asked, knowledge=services.knowledge.search)
    assert (update["retrieval_results"], update["degraded"]) == ([], ["knowledge"])


async def test_all_bases_are_searched_and_the_base_of_the_best_passage_answers(services: Services) -> None:
    first = await a_base(services, handler="cited", system_prompt="Be brief.")
    await put(services, first, "leave.md", "# Leave\n\n## Holidays\n\nThirty days of holidays for everybody.")
    other = await services.knowledge.bases.create(DEFAULT_TENANT, NewBase("school", "A school"))
    await put(services, other, "year.md", "# Year\n\n## Lessons\n\nThe holidays of the school begin in July.")
    written: Written = []
    asked = runtime(written, message="How many days of holidays does everybody have?")
    update = await retrieve(state(), asked, knowledge=services.knowledge.search)
    assert update["retrieval_results"][0]["kb_prefix"] == update["route_decision"]["kb_prefix"] == "handbook"
    assert (update["handler"], update["kb_instructions"]) == ("cited", "Be brief.")
    assert update["route_decision"]["method"] == "similarity"
    assert written == [{"status": "route_decision", "content": update["route_decision"]}]
    other_topic = runtime(message="Who won the film festival?")
    update = await retrieve(state(), other_topic, knowledge=services.knowledge.search)
    assert (update["retrieval_results"], update["route_decision"]["kb_prefix"]) == ([], None)
    assert update["route_decision"]["method"] == "default"
