"""After the chaos: is every turn an episode, indexed once, found by what was said in it, and nothing an orphan?"""

import asyncio
import time
from collections import Counter
from typing import Any, LiteralString

import httpx

from services.platform.postgres import Database
from services.text.tokenizer import terms
from tests.chaos.checks import query
from tests.chaos.cluster import Cluster
from tests.support.lineage import Orphan, orphans
from tests.support.milvus_server import indexed

_INDEXED_WITHIN_S = 60.0
_SEARCHED = 25

_EPISODES: LiteralString = """
SELECT t.id, count(e.id) FROM turns t
LEFT JOIN episodes e ON t.user_message_id = ANY(e.source_message_ids)
WHERE t.status = 'completed' GROUP BY t.id HAVING count(e.id) <> 1
"""

_UNITS: LiteralString = """
SELECT m.id, m.content, e.id, u.external_id, m.role FROM episodes e
JOIN messages m ON m.id = ANY(e.source_message_ids) AND m.completed JOIN users u ON u.id = e.user_id
ORDER BY m.id
"""


async def _orphans(database_url: str) -> list[Orphan]:
    database = Database(database_url)
    await database.open()
    try:
        return await orphans(database)
    finally:
        await database.close()


async def check_memory(cluster: Cluster, http: httpx.AsyncClient) -> tuple[dict[str, object], list[str]]:
    """Wait until everything is indexed; return figures, and every promise that was broken."""
    begun = time.monotonic()
    waiting = 1
    while waiting and time.monotonic() - begun < _INDEXED_WITHIN_S:
        waiting = query(cluster.database_url, "SELECT count(*) FROM episodes WHERE indexed_at IS NULL")[0][0]
        await asyncio.sleep(0.2)
    broken = [f"{waiting} episodes are not indexed"] if waiting else []
    broken += [f"turn {turn} is {count} episodes" for turn, count in query(cluster.database_url, _EPISODES)]
    units = query(cluster.database_url, _UNITS)
    expected = {unit for unit, content, *_ in units if terms(content)}
    there = Counter(row.id for row in await asyncio.to_thread(indexed, cluster.milvus.uri))
    broken += [f"message {unit} is in the index {there[unit]} times" for unit in expected if there[unit] != 1]
    broken += [f"{unit} is in the index and nowhere else" for unit in there.keys() - expected]
    asked = [each for each in units if each[4] == "user" and each[1].startswith("message-")][:_SEARCHED]
    for _, content, episode, user, _ in asked:
        body = {"query": content, "top_k": 100}
        answer = await http.post(f"{cluster.addresses[0]}/api/v1/users/{user}/episodes/search", json=body)
        found: dict[str, Any] = answer.json()
        if found.get("degraded") or str(episode) not in {item["id"] for item in found.get("items", ())}:
            broken.append(f"{content} is not found: {answer.status_code}, {found.get('degraded')}")
    without = await _orphans(cluster.database_url)
    broken += [f"{each.kind} {each.id} of {each.user}: {each.problem}" for each in without]
    derived = query(cluster.database_url, "SELECT count(*) FROM derived_items WHERE state <> 'retracted'")[0][0]
    figures: dict[str, object] = {
        "units in the index": there.total(),
        "derived items with parents": derived,
        "indexed after (s)": round(time.monotonic() - begun, 1),
    }
    return figures, broken
