"""retrieve, over a knowledge base with a document; what is away is left out and named."""

import pytest

from nodes.retrieve import retrieve
from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.knowledge.bases import NewBase
from state.conversation import each_once
from tests.support.knowledge import a_base, put
from tests.support.turns import Written, runtime, state

pytestmark = pytest.mark.anyio


async def test_what_is_degraded_already_is_named_once(services: Services) -> None:
    base = await a_base(services)
    await put(services, base, "leave.md", "Thirty days of holidays.")
    asked = state(requested_kb_prefix="handbook", message="How many days of holidays?", degraded=["milvus"])
    update = await retrieve(asked, runtime(), knowledge=services.knowledge.search)
    assert each_once(asked["degraded"], update["degraded"]) == ["milvus"]


@pytest.mark.parametrize("prefix", [None, "nothing"])
async def test_without_a_base_there_are_no_passages(services: Services, prefix: str | None) -> None:
    update = await retrieve(state(requested_kb_prefix=prefix), runtime(), knowledge=services.knowledge.search)
    assert (update["retrieval_results"], update["degraded"]) == ([], [])


async def test_without_the_database_the_turn_goes_on(services: Services) -> None:
    await services.database.close()
    asked = state(requested_kb_prefix="handbook", message="How many days of holidays?")
    update = await retrieve(asked, runtime(), knowledge=services.knowledge.search)
    assert (update["retrieval_results"], update["degraded"]) == ([], ["knowledge"])


async def test_all_bases_are_searched_and_the_base_of_the_best_passage_answers(services: Services) -> None:
    first = await a_base(services, handler="cited", system_prompt="Be brief.")
    await put(services, first, "leave.md", "# Leave\n\n## Holidays\n\nThirty days of holidays for everybody.")
    other = await services.knowledge.bases.create(DEFAULT_TENANT, NewBase("school", "A school"))
    await put(services, other, "year.md", "# Year\n\n## Lessons\n\nThe holidays of the school begin in July.")
    written: Written = []
    asked = state(message="How many days of holidays does everybody have?")
    update = await retrieve(asked, runtime(written), knowledge=services.knowledge.search)
    assert update["retrieval_results"][0]["kb_prefix"] == update["kb_prefix"] == "handbook"
    assert (update["handler"], update["kb_instructions"]) == ("cited", "Be brief.")
    assert update["route_decision"]["method"] == "similarity"
    assert written == [{"status": "route_decision", "content": update["route_decision"]}]
    other_topic = state(message="Who won the film festival?")
    update = await retrieve(other_topic, runtime(), knowledge=services.knowledge.search)
    assert (update["retrieval_results"], update["kb_prefix"]) == ([], None)
    assert update["route_decision"]["method"] == "default"


async def test_a_keyword_of_the_operator_adds_to_what_speaks_for_a_base(services: Services) -> None:
    base = await a_base(services, keywords=("vacation",))
    await put(services, base, "leave.md", "# Leave\n\nEverybody has thirty days, and five more with children.")
    plain = await services.knowledge.search.search(DEFAULT_TENANT, None, "Who may go home?")
    named = await services.knowledge.search.search(DEFAULT_TENANT, None, "Who has a vacation of thirty days?")
    assert named.passages
    assert not plain.passages


async def test_a_question_that_leaves_its_subject_open_is_searched_with_the_one_before(services: Services) -> None:
    base = await a_base(services)
    await put(services, base, "leave.md", "# Leave\n\n## Holidays\n\nThirty days of holidays.")
    asked = state(message="And why?")
    asked["history"] = [
        {"message_id": "m", "role": "user", "content": "How many days of holidays are there?", "parts": []}  # type: ignore[typeddict-item]
    ]
    update = await retrieve(asked, runtime(), knowledge=services.knowledge.search)
    assert [passage["document"] for passage in update["retrieval_results"]] == ["leave.md"]
