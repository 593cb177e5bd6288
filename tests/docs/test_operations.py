"""The page of operations names every background job."""

import json
import re

from tests.support.fork_server import ROOT


def test_every_background_job_has_its_place_in_the_table() -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    table = page.partition("\n| job | when | what |\n")[2].partition("\n\n")[0]
    listed = [name for row in table.splitlines()[1:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    strings = json.loads((ROOT / "api" / "console" / "static" / "strings" / "en.json").read_text("utf-8"))
    assert sorted(listed) == sorted(key.removeprefix("task.") for key in strings if key.startswith("task."))
