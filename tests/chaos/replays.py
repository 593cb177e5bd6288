"""After the chaos: is every kept prompt, put together again, byte for byte the one that was sent?"""

from http import HTTPStatus
from typing import Any

import httpx

from tests.chaos.cluster import Cluster


async def check_replays(cluster: Cluster, http: httpx.AsyncClient) -> tuple[dict[str, object], list[str]]:
    """Replay every completed turn without asking a model; return figures, and every prompt that differs."""
    address, after, same, gone, broken = cluster.addresses[0], "", 0, 0, []
    while after is not None:
        query = {"status": "completed", "limit": "200", **({"after": after} if after else {})}
        page: dict[str, Any] = (await http.get(f"{address}/api/v1/turns", params=query)).raise_for_status().json()
        for turn in page["items"]:
            answer = await http.post(f"{address}/api/v1/turns/{turn['id']}/replay", json={"ask": False})
            if answer.status_code == HTTPStatus.CONFLICT:
                gone += 1
            elif answer.status_code == HTTPStatus.OK and answer.json()["same_prompt"]:
                same += 1
            else:
                broken.append(f"the prompt of turn {turn['id']} is another: {answer.status_code}")
        after = page["next"]
    if not same:
        broken.append("no prompt was kept")
    return {"prompts equal byte for byte": same, "prompts not kept": gone}, broken
