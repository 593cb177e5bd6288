"""Documents taken in, replaced and removed: both stores agree in the end, and no search finds nothing."""

import asyncio
from uuid import UUID

import psycopg
import pytest

from services.bootstrap import Services
from services.engines import Engines
from services.errors import InvalidInput
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.knowledge.document import BadDocument
from services.knowledge.wiring import Knowledge
from tests.support.jobs import HURRIED, until, waits_for_a_lock
from tests.support.knowledge import a_base, found, pdf, put
from tests.support.milvus_server import indexed_chunks

OLD, NEW = "# Leave\n\nThirty days of holidays.", "# Leave\n\nTwenty days of holidays, and more to come."


async def _settled(services: Services) -> None:
    """Run the jobs, as a worker does, and index what waits."""
    jobs = JobQueue(services.database, timings=HURRIED)
    Knowledge(services.settings, services.database, services.milvus, services.embedder, jobs)
    await jobs.open()
    await services.knowledge.indexing.index_waiting()
    await jobs.app.run_worker_async(wait=False, install_signal_handlers=False, listen_notify=False)


def _chunks(engines: Engines, base_id: UUID) -> set[UUID]:
    with psycopg.connect(engines.owner_url or "") as owner:
        owner.execute("SELECT set_config('anamnesis.tenant_id', %s, true)", [str(DEFAULT_TENANT)])
        rows = owner.execute("SELECT id FROM kb_chunks WHERE base_id = %s", [base_id]).fetchall()
    return {row[0] for row in rows}


async def test_the_same_bytes_are_taken_in_once(remembering: Services, engines: Engines) -> None:
    base = await a_base(remembering)
    first = await put(remembering, base, "leave.md", OLD)
    assert (first.status, first.document.title, first.document.waiting) == ("created", "Leave", 1)
    before = _chunks(engines, base.id)
    again = await put(remembering, base, "leave.md", OLD)
    assert (again.status, again.document.id) == ("unchanged", first.document.id)
    assert _chunks(engines, base.id) == before


async def test_a_changed_document_takes_the_place_of_the_old_in_both_stores(
    remembering: Services, engines: Engines, milvus_uri: str
) -> None:
    base = await a_base(remembering)
    first = await put(remembering, base, "leave.md", OLD)
    await _settled(remembering)
    assert await found(remembering, "How many days of holidays?") == [("leave.md", "Thirty days of holidays.")]
    second = await put(remembering, base, "leave.md", NEW)
    assert (second.status, second.document.id) == ("replaced", first.document.id)
    told = [("leave.md", "Twenty days of holidays, and more to come.")]
    assert await found(remembering, "How many days of holidays?") == told
    await _settled(remembering)
    assert await found(remembering, "How many days of holidays?") == told
    assert indexed_chunks(milvus_uri, base.id) == dict.fromkeys(_chunks(engines, base.id), 1)


async def test_while_it_is_replaced_again_and_again_a_search_finds_one_of_them(remembering: Services) -> None:
    base = await a_base(remembering)
    await put(remembering, base, "leave.md", OLD)
    await _settled(remembering)
    ended = asyncio.Event()

    async def replace() -> None:
        for number in range(12):
            await put(remembering, base, "leave.md", (NEW, OLD)[number % 2])
            if number % 3:
                await _settled(remembering)
        ended.set()

    async def search(agent_type: str) -> int:
        count = 0
        while not ended.is_set():
            passages = await found(remembering, "How many days of holidays?", agent_type=agent_type)
            assert len(passages) == 1, passages
            count += 1
        return count

    replacing = asyncio.create_task(replace())
    counts = await asyncio.gather(search("hybrid_agent"), search("naive_rag_agent"))
    await replacing
    assert min(counts) > 5


async def test_a_document_and_a_base_leave_both_stores(
    remembering: Services, engines: Engines, milvus_uri: str
) -> None:
    base = await a_base(remembering)
    leave = await put(remembering, base, "leave.md", OLD)
    await put(remembering, base, "hours.md", "Nine to five.")
    await _settled(remembering)
    await remembering.knowledge.documents.delete(DEFAULT_TENANT, base.id, leave.document.id)
    assert "leave.md" not in dict(await found(remembering, "How many days of holidays?"))
    await _settled(remembering)
    assert len(indexed_chunks(milvus_uri, base.id)) == 1
    await remembering.knowledge.bases.delete(DEFAULT_TENANT, "handbook")
    await _settled(remembering)
    assert indexed_chunks(milvus_uri, base.id) == {}
    assert _chunks(engines, base.id) == set()


async def test_what_cannot_be_read_leaves_the_one_before(remembering: Services) -> None:
    base = await a_base(remembering)
    await put(remembering, base, "leave.pdf", pdf("Thirty days of holidays."))
    with pytest.raises(BadDocument):
        await put(remembering, base, "leave.pdf", b"%PDF-1.7 broken")
    assert len(await found(remembering, "How many days of holidays?")) == 1


async def test_who_removes_a_document_locks_its_base_first_as_who_replaces_it(remembering: Services) -> None:
    base = await a_base(remembering)
    document = (await put(remembering, base, "leave.md", OLD)).document
    async with remembering.database.tenant(DEFAULT_TENANT) as replacing:
        await replacing.execute("SELECT FROM knowledge_bases WHERE id = %s FOR UPDATE", [base.id])
        removing = asyncio.create_task(
            remembering.knowledge.documents.delete(DEFAULT_TENANT, base.id, document.id)
        )
        await until(lambda: waits_for_a_lock(remembering.database))
        await replacing.execute("SELECT FROM kb_documents WHERE base_id = %s FOR UPDATE NOWAIT", [base.id])
    await removing
    assert await remembering.knowledge.documents.sources(DEFAULT_TENANT, base.id) == set()


async def test_a_name_that_is_none_is_refused(remembering: Services) -> None:
    base = await a_base(remembering)
    for source in (" ", "a\nb.md", "\ud800.md", "x" * 501):
        with pytest.raises(InvalidInput):
            await put(remembering, base, source, "x")
