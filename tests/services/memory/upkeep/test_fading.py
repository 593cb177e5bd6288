"""Memories that are unimportant and unused fade by policy, with a report, and come back exactly as they were."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from services.bootstrap import Services
from services.errors import Conflict, NotFound
from services.identity.tenants import DEFAULT_TENANT
from services.memory.catalog import EpisodeFilter
from services.memory.core.blocks import Owner
from services.memory.episodes.episode import Scope
from tests.support.upkeep import ARCHIVE, change, someone, write, written_before

pytestmark = pytest.mark.untraced


async def _found(services: Services, owner: Owner, query: str, *, at: datetime | None = None) -> list[str]:
    now = datetime.now(UTC)
    found = await services.memory.archive.search(Scope.of(owner, as_of=at), query, top_k=5, now=now)
    return [each.content for each in found.items]


async def _listed(services: Services, *, archived: bool | None = None) -> dict[UUID, bool]:
    wanted = EpisodeFilter(archived=archived)
    page = await services.memory.catalog.page(DEFAULT_TENANT, "u-1", wanted, after=None, limit=50)
    return {entry.id: entry.archived_at is not None for entry in page}


async def test_only_what_is_unimportant_unused_and_unpinned_fades(services: Services) -> None:
    owner = await someone(services)
    old, recalled, pinned = await written_before(services, owner, "Owns a red kettle", "recalled", "pinned")
    (long_ago,) = await written_before(services, owner, "recalled once", days=200)
    (young,) = await write(services, owner, "young", importance=0.2)
    (important,) = await written_before(services, owner, "important", importance=0.3)
    await change(
        services, "UPDATE episodes SET last_recalled_at = now(), recall_count = 1 WHERE id = %s", recalled
    )
    ago = datetime.now(UTC) - timedelta(days=120)
    await change(
        services, "UPDATE episodes SET last_recalled_at = %s, recall_count = 1 WHERE id = %s", ago, long_ago
    )
    await change(services, "UPDATE episodes SET pinned_at = now() WHERE id = %s", pinned)
    preview = await services.upkeep.preview(DEFAULT_TENANT, "u-1", ARCHIVE)
    assert (preview.total, [each.id for each in preview.fading]) == (2, [long_ago, old])
    assert [each.unused_days for each in preview.fading] == [120, 91]
    assert "Importance 0.2 is below 0.3, and it was never recalled" in preview.fading[1].why
    report = await services.upkeep.run(DEFAULT_TENANT, "u-1", ARCHIVE)
    assert (set(report.faded_ids), report.days, report.importance) == ({old, long_ago}, 90, 0.3)
    assert await _listed(services) == {
        old: True, long_ago: True, recalled: False, pinned: False, young: False, important: False,
    }  # fmt: skip
    assert set(await _listed(services, archived=True)) == {old, long_ago}


async def test_what_is_archived_is_not_recalled_was_known_before_and_comes_back(services: Services) -> None:
    owner = await someone(services)
    (kettle,) = await written_before(services, owner, "The user owns a red kettle from Lisbon")
    assert await _found(services, owner, "red kettle") == ["The user owns a red kettle from Lisbon"]
    before = datetime.now(UTC)
    await services.upkeep.run(DEFAULT_TENANT, "u-1", ARCHIVE)
    assert await _found(services, owner, "red kettle") == []
    assert await _found(services, owner, "red kettle", at=before) == ["The user owns a red kettle from Lisbon"]
    archived = datetime.now(UTC)
    await services.upkeep.restore(DEFAULT_TENANT, "u-1", kettle)
    assert await _found(services, owner, "red kettle") == ["The user owns a red kettle from Lisbon"]
    assert await _found(services, owner, "red kettle", at=archived) == []
    with pytest.raises(Conflict, match="not archived"):
        await services.upkeep.restore(DEFAULT_TENANT, "u-1", kettle)
    with pytest.raises(NotFound):
        await services.upkeep.restore(DEFAULT_TENANT, "u-1", uuid4())
