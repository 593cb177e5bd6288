"""Users of a tenant, as they are listed."""

import httpx

from services.bootstrap import Services
from tests.support.turns import exchange


async def test_users_are_listed_by_name_with_how_much_there_is_of_them(
    client: httpx.AsyncClient, services: Services
) -> None:
    for name in ("b-2", "a-1", "B-1"):
        await exchange(services.turns, "Hello", "Hi", user_id=name)
    await exchange(services.turns, "Again", "Hi", user_id="a-1", session_id="s-2")
    await client.patch("/api/v1/users/b-2", json={"display_name": "Álvaro"})
    users = (await client.get("/api/v1/users")).json()["items"]
    assert [user["user_id"] for user in users] == ["B-1", "a-1", "b-2"]
    assert (users[1]["conversations"], users[1]["messages"], users[1]["episodes"]) == (2, 4, 2)
    assert users[1]["last_active_at"] > users[1]["created_at"]

    async def named(**query: str) -> list[str]:
        return [user["user_id"] for user in (await client.get("/api/v1/users", params=query)).json()["items"]]

    assert await named(prefix="b") == ["B-1", "b-2"]
    assert await named(prefix="álv") == ["b-2"]
    assert await named(prefix="%") == []
    page = (await client.get("/api/v1/users", params={"limit": 2})).json()
    assert page["next"] == "a-1"
    assert await named(limit="2", after=page["next"]) == ["b-2"]
