"""What the service names by ids has words in both languages of the console."""

import json

import pytest

from api.console.pages import FILES
from services.bootstrap import Services

pytestmark = pytest.mark.anyio


async def test_every_background_job_has_a_name(services: Services) -> None:
    tasks = {name for name in services.jobs.app.tasks if "builtin" not in name}
    assert "file_memory" in tasks
    for language in ("en", "zh"):
        strings = json.loads((FILES / "strings" / f"{language}.json").read_text("utf-8"))
        named = {key.removeprefix("task.") for key in strings if key.startswith("task.")}
        assert named == tasks, language
