from uuid import UUID

import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.conversations.turn import OpenTurn
from services.identity.tenants import DEFAULT_TENANT
from services.memory.episodes.index import UnitHit
from services.memory.episodes.scope import Scope
from services.text.tokenizer import terms
from tests.support.turns import exchange

pytestmark = pytest.mark.anyio


def scope(turn: OpenTurn, **more: object) -> Scope:
    return Scope(turn.tenant_id, turn.user_id, turn.expert_id, **more)  # type: ignore[arg-type]


async def _search(
    services: Services, turn: OpenTurn, text: str, **more: object
) -> tuple[list[UnitHit], list[UnitHit]]:
    vectors = await services.embedder.embed_documents([text])
    lexical, dense = await services.memory.index.search(scope(turn, **more), [terms(text)], vectors, 10)
    return lexical[0], dense[0]


async def _unindexed(services: Services) -> int:
    rows = await services.database.fetch(
        DEFAULT_TENANT, "SELECT count(*) FROM episodes WHERE indexed_at IS NULL", {}, tuple_row
    )
    return int(rows[0][0])


@pytest.mark.in_clear
async def test_what_was_said_is_found_by_words_and_by_meaning(remembering: Services) -> None:
    turn = await exchange(remembering.turns, "我养了一只叫布鲁诺的狗", "布鲁诺真可爱")
    await exchange(remembering.turns, "I work as a gardener in Lisbon", "How lovely", session_key="s-2")
    assert await remembering.memory.indexing.index_waiting() == 2
    assert await _unindexed(remembering) == 0
    for text, expected in (("我的狗叫什么", turn.user_message_id), ("布鲁诺可爱吗", turn.answer_message_id)):
        lexical, dense = await _search(remembering, turn, text)
        assert expected in {hit.unit_id for hit in lexical[:2]}
        assert expected in {hit.unit_id for hit in dense[:2]}
    assert isinstance(lexical[0].episode_id, UUID)
    assert "布鲁诺" in " ".join(lexical[0].terms)
