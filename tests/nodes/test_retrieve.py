import pytest

from nodes.retrieve import retrieve
from services.knowledge.search import KnowledgeSearch
from tests.support.turns import runtime, state

pytestmark = pytest.mark.anyio


async def test_with_no_knowledge_base_there_are_no_passages() -> None:
    update = await retrieve(state(kb_prefix="handbook"), runtime(), knowledge=KnowledgeSearch())
    assert set(update) == {"retrieval_results", "retrieval_ms"}
    assert update["retrieval_results"] == []
