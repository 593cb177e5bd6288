"""What the index promises, against Milvus Lite as a server."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from services.errors import Unavailable
from services.memory.episodes.episode import IndexedUnit, Scope
from services.memory.episodes.index import NAME, SHARDS, EpisodeIndex, as_entity, shard_of
from services.platform.milvus import Milvus
from services.search.collection import VERSION
from services.text.tokenizer import terms
from tests.support.lexical_embeddings import LexicalEmbeddings
from tests.support.milvus_server import embedded_milvus, indexed, of_user
from tests.support.units import unit_of

pytestmark = [pytest.mark.process, pytest.mark.untraced]

MODEL, DIMENSIONS = "lexical", 256
EMBEDDINGS = LexicalEmbeddings(DIMENSIONS)


@dataclass
class Store:
    """An index and where it is."""

    index: EpisodeIndex
    milvus: Milvus
    uri: str


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server for this module: its collections are of another embedding model than those of all others."""
    with embedded_milvus(tmp_path_factory.mktemp("milvus")) as uri:
        yield uri


@pytest.fixture
async def store(uri: str) -> AsyncIterator[Store]:
    """An index over it."""
    milvus = Milvus(uri)
    yield Store(EpisodeIndex(milvus, model=MODEL, dimension=DIMENSIONS), milvus, uri)
    await milvus.close()


@pytest.fixture
def user() -> Scope:
    """A user whose shard others share."""
    return Scope(uuid4(), uuid4(), uuid4())


def beside(user_id: UUID) -> UUID:
    """Another user of the same shard."""
    return UUID(int=uuid4().int // SHARDS * SHARDS + user_id.int % SHARDS)


def row(scope: Scope, text: str, **values: Any) -> IndexedUnit:
    return replace(unit_of(scope, text, terms(text), EMBEDDINGS.embed_query(text)), **values)


async def find(store: Store, scope: Scope, text: str, limit: int = 10) -> tuple[list[UUID], list[UUID]]:
    """Units found by words, and by meaning."""
    lexical, dense = await store.index.search(scope, [terms(text)], [EMBEDDINGS.embed_query(text)], limit)
    return [hit.unit_id for hit in lexical[0]], [hit.unit_id for hit in dense[0]]


def ids(rows: Sequence[IndexedUnit]) -> set[UUID]:
    return {each.unit_id for each in rows}


async def test_some_or_all_of_a_user_is_forgotten_and_nothing_else(store: Store, user: Scope) -> None:
    other = replace(user, user_id=beside(user.user_id))
    mine = [row(user, f"tea {number}") for number in range(250)]
    others = [row(other, "tea too")]
    await store.index.upsert([*mine, *others])
    assert await store.index.forget(other.user_id, [mine[0].episode_id]) == 0
    await store.index.forget(user.user_id, [each.episode_id for each in mine[:240]])
    assert set(of_user(store.uri, user.user_id)) == ids(mine[240:])
    await store.index.forget(user.user_id, [])
    assert set(of_user(store.uri, user.user_id)) == ids(mine[240:])
    await store.index.forget(user.user_id)
    assert of_user(store.uri, user.user_id) == {}
    assert await find(store, user, "tea") == ([], [])
    assert await find(store, other, "tea") == ([others[0].unit_id], [others[0].unit_id])


async def test_a_long_text_is_found_by_its_beginning(store: Store, user: Scope) -> None:
    word = "😀狗"
    many = row(user, "", terms=[f"{word}{number}" for number in range(4000)])
    one = row(user, "", terms=[word * 5000])
    await store.index.upsert([many, one])
    lexical, _ = await store.index.search(user, [[f"{word}0"], [f"{word}3999"]], [], 10)
    assert [[hit.unit_id for hit in hits] for hits in lexical] == [[many.unit_id], []]
    stored = {unit.id: unit.terms for unit in indexed(store.uri) if unit.user_id == user.user_id}
    assert 7900 < len(stored[many.unit_id].encode()) <= 8000
    assert set(stored[many.unit_id].split()) <= set(many.terms)
    assert (word * 5000).startswith(stored[one.unit_id])
    assert 7900 < len(stored[one.unit_id].encode()) <= 8000


NASTY = ('" or 1==1 --', "\\", '\\"', "'; drop", "a\x00b", "😀", '") or user_id != ("', "%s{}{0}", "\n", "")


async def test_terms_that_would_break_a_filter_are_only_words(store: Store, user: Scope) -> None:
    other = replace(user, user_id=beside(user.user_id))
    kept = row(other, "secret", terms=["secret", *NASTY])
    await store.index.upsert([kept])
    mine = [row(user, "", terms=[text, "own"]) for text in NASTY]
    await store.index.upsert(mine)
    for text in NASTY:
        lexical, _ = await store.index.search(user, [[text, "secret"], ["own"]], [], 20)
        assert {hit.unit_id for hit in lexical[0]} <= ids(mine)
        assert {hit.unit_id for hit in lexical[1]} == ids(mine)
    assert of_user(store.uri, other.user_id) == {kept.unit_id: 1}


async def test_nobody_finds_what_is_anothers_with_the_same_texts_in_the_same_shard(
    store: Store, user: Scope
) -> None:
    strangers = {
        "user": replace(user, user_id=beside(user.user_id)),
        "tenant": Scope(uuid4(), beside(user.user_id), user.expert_id),
    }
    here = uuid4()
    rows = {name: row(scope, "the same secret", conversation_id=here) for name, scope in strangers.items()}
    rows["me"] = row(user, "the same secret", conversation_id=here)
    await store.index.upsert(list(rows.values()))
    for name, scope in {**strangers, "me": user}.items():
        for asked in (scope, replace(scope, conversation_id=here)):
            assert await find(store, asked, "the same secret") == ([rows[name].unit_id],) * 2
    # Ids that were guessed: another's user with one's own tenant, and the reverse.
    guessed = (
        replace(user, tenant_id=strangers["tenant"].tenant_id),
        replace(strangers["tenant"], tenant_id=user.tenant_id),
        replace(user, expert_id=uuid4()),
    )
    for scope in guessed:
        assert await find(store, scope, "the same secret") == ([], [])


async def test_an_index_of_another_model_is_searched_by_words_alone_and_not_written(
    tmp_path: Path, user: Scope
) -> None:
    milvus = Milvus(str(tmp_path / "index.db"))
    kept = row(user, "tea")
    await EpisodeIndex(milvus, model=MODEL, dimension=DIMENSIONS).upsert([kept])
    for model, dimension in (("another", DIMENSIONS), (MODEL, 16)):
        other = EpisodeIndex(milvus, model=model, dimension=dimension)
        words, meaning = await other.search(user, [terms("tea")], [[1.0] * dimension], 5)
        assert [[hit.unit_id for hit in hits] for hits in words] == [[kept.unit_id]]
        assert meaning == [[]]
        assert (await other.rows(user, [(kept.unit_id, 0)], within_s=60.0))[kept.unit_id, 0][1] is None
        with pytest.raises(Unavailable, match=f"being rebuilt for the embedding model {model}"):
            await other.upsert([row(user, "tea")])
        assert not other.vectors.outdated
        await other.vectors.check()
        assert other.vectors.outdated
    await milvus.close()


async def test_an_index_of_an_older_version_is_noticed_until_it_is_rebuilt(store: Store, user: Scope) -> None:
    old = row(user, "tea")
    await store.index.upsert([old])
    await store.index.vectors.check()
    assert not store.index.vectors.outdated
    name = NAME.format(shard=shard_of(user.user_id))
    await store.milvus.in_thread(lambda client: client.alter_collection_properties(name, {VERSION: "1"}))
    await store.index.vectors.check()
    assert store.index.vectors.outdated
    fresh = await store.index.begin_again(shard_of(user.user_id))
    await fresh.add([as_entity(old)])
    await fresh.put_in_place()
    await store.index.vectors.check()
    assert not store.index.vectors.outdated
