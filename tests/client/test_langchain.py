"""The package langchain-anamnesis against the application: what LangGraph asks of a store, a retriever, tools."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from langgraph.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from anamnesis_client import ServiceError
from langchain_anamnesis import AnamnesisRetriever, AnamnesisStore, memory_tools
from tests.client.test_documentation import examples
from tests.support.fork_server import ROOT

pytestmark = pytest.mark.anyio

NEEDS_LANGCHAIN = "from langchain.agents import"
_numbers = itertools.count()


@pytest.fixture
async def store(url: str) -> AsyncIterator[AnamnesisStore]:
    async with AnamnesisStore(url, user=f"u-{next(_numbers)}") as opened:
        yield opened


async def test_the_results_of_a_batch_are_in_its_order(store: AnamnesisStore) -> None:
    await store.aput(("test", "foo"), "key1", {"data": "value1"})
    await store.aput(("test", "bar"), "key2", {"data": "value2"})
    item, put, found, names, missing = await store.abatch(
        [
            GetOp(("test", "foo"), "key1"),
            PutOp(("test", "bar"), "key2", {"data": "value3"}),
            SearchOp(("test",), {"data": "value1"}),
            ListNamespacesOp(),
            GetOp(("test",), "key3"),
        ]
    )
    assert isinstance(item, Item)
    assert (item.namespace, item.key, item.value) == (("test", "foo"), "key1", {"data": "value1"})
    assert put is None
    assert [each.key for each in found] == ["key1"]  # type: ignore[union-attr]
    assert names == [("test", "bar"), ("test", "foo")]
    assert missing is None
    changed = await store.aget(("test", "bar"), "key2")
    assert changed is not None
    assert changed.value == {"data": "value3"}
    assert changed.updated_at > changed.created_at
    assert await store.abatch([]) == []


async def test_removed_and_written_again(store: AnamnesisStore) -> None:
    await store.aput(("a",), "k", {"n": 1})
    await store.adelete(("a",), "k")
    assert await store.aget(("a",), "k") is None
    assert await store.alist_namespaces() == []
    await store.aput(("a",), "k", {"n": 2})
    found = await store.aget(("a",), "k")
    assert found is not None
    assert found.value == {"n": 2}


async def test_search_by_meaning_filter_and_page(store: AnamnesisStore) -> None:
    texts = {
        "1": "My dog is called Bruno.",
        "2": "I work as a nurse.",
        "3": "这是中文",
        "4": "The dog ate the cake.",
    }
    for key, text in texts.items():
        await store.aput(("m", "x"), key, {"text": text, "n": int(key)}, index=False if key == "4" else None)
    found = await store.asearch(("m",), query="the dog's name")
    assert found[0].key == "1"
    assert found[0].score is not None
    assert found[-1].key == "4"
    assert found[-1].score is None
    assert [each.key for each in await store.asearch(("m",), query="这是中文", limit=1)] == ["3"]
    assert {each.key for each in await store.asearch(("m",), filter={"n": {"$gte": 3}})} == {"3", "4"}
    pages = [await store.asearch((), limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [len(each) for each in pages] == [2, 2, 0]
    assert {each.key for page in pages for each in page} == set("1234")


async def test_each_field_counts_by_itself(url: str) -> None:
    store = AnamnesisStore(url, user="fields", fields=["a", "more[*].b"])
    async with store:
        await store.aput(("f",), "1", {"a": "tax declaration", "c": "violin", "more": [{"b": "garden shed"}]})
        await store.aput(("f",), "2", {"a": "garden shed"})
        one, two = await store.asearch(("f",), query="garden shed")
        assert one.score == pytest.approx(two.score, abs=1e-3)
        found = await store.asearch(("f",), query="tax declaration")
        assert found[0].key == "1"
        violin = await store.asearch(("f",), query="violin")
        assert all((each.score or 0) < 0.9 for each in violin)


async def test_namespaces(store: AnamnesisStore) -> None:
    for labels in (("foo",), ("foo", "child"), ("foobar",), ("uid", "users", "alice"), ("uid", "users", "malice")):
        await store.aput(labels, "k", {})
    assert await store.alist_namespaces(prefix=("foo",)) == [("foo",), ("foo", "child")]
    assert await store.alist_namespaces(suffix=("alice",)) == [("uid", "users", "alice")]
    assert len(await store.alist_namespaces(prefix=("uid", "*", "*"))) == 2
    assert await store.alist_namespaces(max_depth=1) == [("foo",), ("foobar",), ("uid",)]
    twice = (MatchCondition("prefix", ("a",)), MatchCondition("prefix", ("b",)))
    with pytest.raises(ValueError, match="one prefix"):
        await store.abatch([ListNamespacesOp(twice)])


async def test_time_to_live(url: str) -> None:
    async with AnamnesisStore(url, user="ttl", ttl={"default_ttl": 0.01, "refresh_on_read": False}) as store:
        await store.aput(("a",), "short", {})
        await store.aput(("a",), "long", {}, ttl=60)
        await store.aput(("a",), "always", {}, ttl=None)
        assert await store.aget(("a",), "short") is not None
        await asyncio.sleep(0.65)
        assert {each.key for each in await store.asearch(("a",))} == {"long", "always"}


async def test_a_namespace_names_the_user_and_the_space(url: str) -> None:
    async with AnamnesisStore(url, user="other", user_at=1, space_at=2) as store:
        await store.abatch([PutOp(("m", who), "k", {"who": who}) for who in ("ada", "bob")])
        await store.aput(("m", "ada", "work"), "k", {"who": "ada at work"})
        async with (
            AnamnesisStore(url, user="ada") as of_ada,
            AnamnesisStore(url, user="ada", space="work") as at_work,
        ):
            assert [each.value for each in await of_ada.asearch(("m",))] == [{"who": "ada"}]
            assert [each.value for each in await at_work.asearch(("m",))] == [{"who": "ada at work"}]
        assert await store.asearch(("m",)) == []  # of the user `other`
        values = [each.value for each in await store.asearch(("m", "bob"))]
        assert values == [{"who": "bob"}]


async def test_what_is_refused_says_why(store: AnamnesisStore) -> None:
    with pytest.raises(ServiceError, match="near"):
        await store.asearch(("a",), filter={"n": {"$near": 1}})
    with pytest.raises(ValueError, match="period"):
        await store.aput(("a.b",), "k", {})


async def test_the_same_without_an_event_loop(url: str) -> None:
    def use() -> Any:
        with AnamnesisStore(url, user="sync") as store:
            store.put(("a",), "k", {"text": "My dog is called Bruno."})
            found = store.search(("a",), query="dog")
            return store.get(("a",), "k"), found, store.list_namespaces()

    item, found, names = await asyncio.to_thread(use)
    assert item.value == found[0].value == {"text": "My dog is called Bruno."}
    assert names == [("a",)]


async def test_a_store_serves_several_loops(url: str) -> None:
    store = AnamnesisStore(url, user="loops")
    await store.aput(("a",), "k", {"n": 1})

    async def again() -> int:
        found = await store.aget(("a",), "k")
        await store.__aexit__(None, None, None)
        assert found is not None
        return int(found.value["n"])

    assert await asyncio.to_thread(asyncio.run, again()) == 1
    await store.__aexit__(None, None, None)


async def test_tools_and_retriever_in_an_event_loop(url: str) -> None:
    remember, forget, search_memory = memory_tools(url, user="tools")
    assert "cello" in await remember.ainvoke({"text": "Plays the cello."})
    assert "cello" in await search_memory.ainvoke({"query": "cello"})
    found = await AnamnesisRetriever(url=url, user="tools").ainvoke("cello")
    assert [each.page_content for each in found] == ["Plays the cello."]
    assert found[0].metadata["kind"] == "preference"
    await forget.ainvoke({"what": "Plays the cello."})
    assert await search_memory.ainvoke({"query": "cello"}) == "Nothing was found."


@pytest.mark.parametrize("number", range(5))
async def test_every_example_of_the_page_runs(number: int, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = examples(ROOT / "docs" / "langgraph.md")
    assert len(blocks) == 5
    if NEEDS_LANGCHAIN in blocks[number]:
        pytest.importorskip("langchain")
    code = compile(blocks[number].replace("http://127.0.0.1:8000", url), "documentation", "exec")
    names: dict[str, Any] = {"__name__": "__main__"}
    await asyncio.to_thread(exec, code, names)
    said = capsys.readouterr().out
    wanted: dict[int, Callable[[], bool]] = {
        0: lambda: (
            "pet 0." in said and "work" in said and "{'text': 'My dog is called Bruno.', 'year': 2024}" in said
        ),
        1: lambda: said.split() == ["0", "1"],
        2: lambda: "Bruno." in said,
        3: lambda: "penicillin" in said,
        4: lambda: said.count("cello") >= 2,
    }
    assert wanted[number](), said
