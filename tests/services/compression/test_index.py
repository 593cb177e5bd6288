"""The index follows: what was merged leaves it, the new text comes in, and undoing reverses both."""

from collections import Counter
from datetime import UTC, datetime
from uuid import UUID

import pytest

from services.bootstrap import Services
from services.memory.episodes.index_sync import EpisodeIndexSync
from services.memory.episodes.scope import Scope
from tests.support.compressing import compress, merging, someone, undo, write
from tests.support.jobs import hurried_queue, until
from tests.support.milvus_server import of_user
from tests.support.model_server import ModelServer
from tests.support.turns import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]


async def test_the_index_follows_a_run_and_its_undoing(
    remembering: Services, milvus_uri: str, model_server: ModelServer
) -> None:
    model_server.default = merging()
    owner = await someone(remembering)
    turns = [await exchange(remembering.turns, f"I love green tea from Hangzhou{end}", "Good.") for end in ".!…~"]
    (kept,) = await write(remembering, owner, "Bruno is a dog")
    await remembering.memory.indexing.index_waiting()
    units = {each for turn in turns for each in (turn.user_message_id, turn.answer_message_id)} | {kept}
    assert of_user(milvus_uri, owner.user_id) == Counter(units)

    run, report = await compress(remembering, owner)
    assert report.consolidated == 1
    scope = Scope(owner.tenant_id, owner.user_id, owner.expert_id)

    async def found() -> list[set[UUID]]:
        search = remembering.memory.archive.search(scope, "green tea", top_k=5, now=datetime.now(UTC))
        return [{source.message_id for source in item.sources} for item in (await search).items if item.sources]

    said = {each for turn in turns for each in (turn.user_message_id, turn.answer_message_id)}
    assert await found() == [said]  # before the index knows
    await remembering.memory.indexing.index_waiting()
    indexed = of_user(milvus_uri, owner.user_id)
    assert len(indexed) == 2
    assert kept in indexed
    assert await found() == [said]
    await remembering.memory.indexing.rebuild(lambda _: None)
    assert of_user(milvus_uri, owner.user_id) == indexed

    await undo(remembering, owner, run)
    assert len(await found()) > 1
    async with hurried_queue(remembering.database) as jobs:
        EpisodeIndexSync(remembering.database, remembering.memory.index, remembering.embedder, jobs)
        jobs.start_worker()

        async def restored() -> bool:
            return of_user(milvus_uri, owner.user_id) == Counter(units)

        await until(restored)
