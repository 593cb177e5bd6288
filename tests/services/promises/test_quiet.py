"""Quiet hours are set by a message that is nothing but their name and their value, without a model's tools."""

import httpx
import pytest

from services.promises.quiet import plain_quiet
from tests.support.model_server import ModelServer, Reply
from tests.support.talking import say


@pytest.mark.parametrize(
    ("message", "hours"),
    [
        ("Quiet hours 22:00-07:00", "22:00-07:00"),
        ("Set my quiet hours to 10pm to 7am.", "22:00-07:00"),
        ("My quiet hours are from ten in the evening until half past six in the morning", "22:00-06:30"),
        ("quiet hours: always", "always"),
        ("No quiet hours, please.", "never"),
        ("把免打扰时间设为晚上十点到早上七点", "22:00-07:00"),
        ("免打擾：22點到7點", "22:00-07:00"),
        ("免打扰时间关闭", "never"),
    ],
)
def test_they_are_read(message: str, hours: str) -> None:
    found = plain_quiet(message)
    assert found is not None
    assert found.hours == hours


@pytest.mark.parametrize(
    "message",
    [
        *("What are quiet hours?", "Quiet hours from ten to seven", "Quiet hours at night", "quiet hours"),
        *("The hospital's quiet hours are 10pm to 7am", "Quiet hours 22:00-07:00 on Sundays", "“quiet hours off”"),
        *("酒店免打扰到十点", "免打扰十点到七点", "他把免打扰关了", "免打扰晚上十点到早上七点是酒店规定"),
    ],
)
def test_what_says_more_or_less_is_left_to_a_model(message: str) -> None:
    assert plain_quiet(message) is None


async def test_a_turn_sets_them_and_tells_it(client: httpx.AsyncClient, model_server: ModelServer) -> None:
    model_server.script(Reply(["All right."]))
    [change] = (await say(client, "Quiet hours 22:00-07:00"))["memory_changes"]
    assert (change["kind"], change["summary"]) == (
        "quiet_hours",
        "Quiet hours, in which nothing is said unasked: 22:00-07:00.",
    )
    user = "/api/v1/users/u-1"
    assert (await client.get(user)).json()["quiet_hours"] == "22:00-07:00"
    (await client.post(f"{user}/memory-operations/{change['operation_id']}/undo")).raise_for_status()
    assert (await client.get(user)).json()["quiet_hours"] is None
