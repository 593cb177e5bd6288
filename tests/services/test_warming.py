"""What a fresh process has loaded before its first turn."""

import os
import subprocess
import sys

import pytest

_CODE = """
from services.platform.settings import load_settings
from services.warming import warm_up

warm_up(load_settings(**{settings!r}))
from openai.types.responses import ResponseCompletedEvent
from services.memory import terms
print(ResponseCompletedEvent.__pydantic_complete__, bool(terms._loaded))
"""
_MODEL = {"llm_model": "m", "llm_base_url": "http://127.0.0.1:1", "llm_api_key": "k"}


@pytest.mark.process
@pytest.mark.parametrize(
    ("settings", "types_are_made"), [(_MODEL, True), ({**_MODEL, "llm_api": "chat"}, False), ({}, False)]
)
def test_the_sdks_types_are_made_where_they_are_needed_and_the_dictionaries_loaded(
    settings: dict[str, str], types_are_made: bool
) -> None:
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _CODE.format(settings=settings)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == [str(types_are_made), "True"]
