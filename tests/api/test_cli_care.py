"""Commands with which memory is looked after, in this process, over the service."""

import asyncio
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import Result

from services.bootstrap import Services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.memory.blocks import Owner
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from tests.api.conftest import Anamnesis
from tests.support.transfer import message, ndjson
from tests.support.turns import exchange

FADED = {"created_at": "2020-03-01T10:00:00+00:00", "origin": "user_said", "importance": 0.1}


def _json(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def _episode(content: str, **others: Any) -> dict[str, Any]:
    return {"kind": "episode", "user_id": "u-1", "content": content, "episode_type": "context", **FADED, **others}


@pytest.fixture
def remembered(anamnesis: Anamnesis, engines: Engines, tmp_path: Path) -> Anamnesis:
    """The same, with two old memories, one of no importance."""
    file = tmp_path / "memories.jsonl"
    cello, umbrella = _episode("Plays the cello.", importance=0.9), _episode("Bought a blue umbrella.")
    file.write_bytes(ndjson(message(1, content="Hello"), cello, umbrella))
    done = anamnesis("import", str(file))
    assert done.exit_code == 0, done.output
    with psycopg.connect(engines.database_url) as connection:  # as if they had been imported long ago
        connection.execute("SELECT set_config('anamnesis.tenant_id', %s, false)", [str(DEFAULT_TENANT)])
        connection.execute("UPDATE episodes SET learned_at = created_at WHERE episode_type = 'context'")
    return anamnesis


def test_upkeep_is_tried_run_listed_and_undone(remembered: Anamnesis) -> None:
    policy = _json(remembered("upkeep", "policy", "--fading", "archive", "--days", "180", "--json"))
    assert (policy["fading"], policy["fading_days"], policy["proposals"]) == ("archive", 180, "propose")
    assert "Unused memories: archive" in remembered("upkeep", "policy").stdout
    tried = _json(remembered("upkeep", "preview", "u-1", "--json"))
    assert ([each["content"] for each in tried["fading"]], tried["total"]) == (["Bought a blue umbrella."], 1)
    shown = remembered("upkeep", "preview", "u-1").stdout
    assert "1 memory would be archived." in shown
    assert "umbrella" not in remembered("upkeep", "preview", "u-1", "--importance", "0").stdout
    done = remembered("upkeep", "run", "u-1").stdout
    assert done.startswith("nothing merged, 1 memory archived.\nTo undo: anamnesis upkeep undo u-1 ")
    assert remembered("upkeep", "run", "u-1").stdout == "Nothing changed.\n"
    assert remembered("upkeep", "preview", "u-1").stdout == "Nothing would change.\n"
    run = done.split()[-1]
    runs = _json(remembered("upkeep", "runs", "u-1", "--json"))
    assert [len(each["faded_ids"]) for each in runs if each["id"] == run] == [1]
    assert run in remembered("upkeep", "runs", "u-1").stdout
    (faded,) = next(each for each in runs if each["id"] == run)["faded_ids"]
    assert remembered("upkeep", "restore", "u-1", faded).stdout == f"Restored the memory {faded}.\n"
    assert remembered("upkeep", "undo", "u-1", run).stdout == f"Undid the run {run}.\n"
    contents = [each["content"] for each in _json(remembered("memory", "show", "u-1", "--json"))["episodes"]]
    assert sorted(contents) == ["Bought a blue umbrella.", "Plays the cello."]


@pytest.mark.anyio
async def test_what_waits_is_listed_and_settled(anamnesis: Anamnesis, services: Services) -> None:
    turn = await exchange(services.turns, "I am allergic to peanuts.", "Noted.")
    trigger = Trigger("model", turn.user_message_id, turn.conversation_id, turn.turn_id)
    owner = Owner(turn.tenant_id, turn.user_id, turn.expert_id)
    request = ChangeRequest(owner, turn.conversation_id, turn.user_message_id, trigger)

    async def proposals(command: str, *arguments: object) -> Result:
        return await asyncio.to_thread(anamnesis, "proposals", command, "u-1", *map(str, arguments))

    assert (await proposals("list")).stdout == "Nothing waits.\n"
    wanted = await services.memory.proposals.add(request, "remember", "Prefers window seats.")
    unwanted = await services.memory.proposals.add(request, "remember", "Trusts every link.")
    listed = _json(await proposals("list", "--json"))
    assert [(each["id"], each["text"]) for each in listed] == [
        (str(unwanted), "Trusts every link."),
        (str(wanted), "Prefers window seats."),
    ]
    shown = (await proposals("list")).stdout
    assert (str(wanted) in shown, "Prefers window seats." in shown) == (True, True)
    accepted = await proposals("accept", wanted)
    assert accepted.stdout == f"Accepted. To undo: anamnesis proposals undo u-1 {wanted}\n"
    assert (await proposals("refuse", unwanted)).stdout == "Refused.\n"
    assert (await proposals("list")).stdout == "Nothing waits.\n"
    assert "window seats" in str(await services.memory.core.read(owner))
    assert (await proposals("undo", wanted)).stdout == "Undone.\n"
    assert "window seats" not in str(await services.memory.core.read(owner))
    again = await proposals("accept", unwanted)
    assert (again.exit_code, again.stdout, again.stderr.count("\n")) == (1, "", 1)
    assert (await proposals("find")).stdout == "Proposed: 0. Applied by policy: 0.\n"


def test_a_tenant_decides_for_how_long_it_keeps_what(remembered: Anamnesis) -> None:
    nothing = {"messages": None, "turns": None, "jobs": None, "operations": None}
    assert _json(remembered("retention", "show", "--json")) == nothing
    assert "There are no rules" in remembered("retention", "preview").stdout
    rules = _json(remembered("retention", "set", "--messages", "365", "--turns", "30", "--json"))
    assert rules == {**nothing, "messages": 365, "turns": 30}
    assert "365" in remembered("retention", "set", "--turns", "off").stdout
    counted = _json(remembered("retention", "preview", "--json"))
    assert [(each["kind"], each["counts"]["conversations"]) for each in counted["kinds"]] == [("messages", 1)]
    refused = remembered("retention", "run", given=b"n\n")
    assert (refused.exit_code, "Permanently remove" in refused.stderr) == (1, True)
    done = remembered("retention", "run", "--yes")
    assert (done.exit_code, "1 conversations" in done.stdout, "removed." in done.stdout) == (0, True, True), (
        done.output
    )
    assert _json(remembered("conversations", "list", "--json")) == []
    for wrong in (["--messages", "0"], ["--jobs", "ten"], []):
        refused = remembered("retention", "set", *wrong)
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_a_word_is_searched_in_every_store_and_after_its_user_was_erased(
    remembered: Anamnesis, tmp_path: Path
) -> None:
    log = tmp_path / "service.log"
    log.write_text("it rained, and the umbrella was blue\n")
    found = remembered("audit", "u-1", "--canary", "umbrella", "--files", str(log))
    assert found.exit_code == 1
    assert "Found in 2 places. Searched: postgresql" in found.stdout
    assert str(log) in found.stdout
    assert "milvus does not answer and was not searched.\n" in found.stderr
    assert [
        each["store"]
        for each in json.loads(remembered("audit", "u-1", "--canary", "cello", "--json").stdout)["findings"]
    ] == ["postgresql"]
    asked = remembered("erase", "u-1", given=b"n\n")
    assert (asked.exit_code, "Permanently erase the user u-1" in asked.stderr) == (1, True)
    erased = _json(remembered("erase", "u-1", "--yes", "--json"))
    assert (erased["user_id"], erased["scrubbed"]) == ("u-1", False)
    gone = remembered("audit", "u-1", "--canary", "cello")
    assert "Found in nothing." in gone.stdout
    assert "There is no user" not in gone.output
