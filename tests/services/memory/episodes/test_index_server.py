"""What is sent to a Milvus server, as a recording of its gRPC shows it. No such server runs here."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from services.memory.episodes.episode import Scope
from services.memory.episodes.index import PREFIX, EpisodeIndex
from services.platform.milvus import Milvus
from services.search.collection import PARTITIONS
from tests.support.recorded_milvus import RecordedMilvus, recorded_milvus
from tests.support.units import unit_of

pytestmark = pytest.mark.process

MODEL, DIMENSIONS = "lexical", 8


@pytest.fixture
def server() -> Iterator[RecordedMilvus]:
    with recorded_milvus() as recording:
        yield recording


def _parameters(request: Any) -> dict[str, str]:
    return {pair.key: pair.value for pair in request.extra_params}


async def test_a_server_gets_one_collection_that_it_divides_by_user(server: RecordedMilvus) -> None:
    milvus = Milvus(server.uri)
    index = EpisodeIndex(milvus, model=MODEL, dimension=DIMENSIONS)
    scopes = [Scope(uuid4(), uuid4(), uuid4()) for _ in range(5)]
    await index.upsert([unit_of(scope, "tea", ["tea"], [1.0] * DIMENSIONS) for scope in scopes])
    (created,) = server.sent["CreateCollection"]
    (schema,) = server.collections.values()
    assert [field.name for field in schema.fields if field.is_partition_key] == ["user_id"]
    assert created.num_partitions == PARTITIONS
    assert server.aliases == {PREFIX: created.collection_name}
    kinds = {request.field_name: _parameters(request)["index_type"] for request in server.sent["CreateIndex"]}
    assert kinds == {"embedding": "HNSW", "sparse": "SPARSE_INVERTED_INDEX", "user_id": "INVERTED"}
    assert [request.collection_name for request in server.sent["Upsert"]] == [PREFIX]
    await milvus.close()


async def test_every_search_names_the_one_user_whose_part_is_searched(server: RecordedMilvus) -> None:
    milvus = Milvus(server.uri)
    index = EpisodeIndex(milvus, model=MODEL, dimension=DIMENSIONS)
    scope = Scope(uuid4(), uuid4(), uuid4())
    await index.upsert([unit_of(scope, "tea", ["tea"], [1.0] * DIMENSIONS)])
    await index.search(scope, [["tea"]], [[1.0] * DIMENSIONS], 5)
    for request in server.sent["Search"]:
        assert request.collection_name == PREFIX
        assert f'user_id == "{scope.user_id}"' in request.dsl
        assert f'tenant_id == "{scope.tenant_id}"' in request.dsl
    await index.forget(scope.user_id)
    assert f'user_id == "{scope.user_id}"' in server.sent["Delete"][0].expr
    await milvus.close()
