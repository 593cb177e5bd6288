"""What a fresh process has done before its first turn."""

import os
import subprocess
import sys
from dataclasses import asdict

from services.engines import Engines

_CODE = """
import asyncio
from services.bootstrap import open_services
from services.engines import Engines
from services.platform.settings import load_settings

async def start():
    settings = load_settings(llm_model="m", llm_base_url="http://127.0.0.1:1", llm_api_key="k", llm_api={api!r})
    async with open_services(settings, Engines(**{engines!r})):
        from openai.types.responses import ResponseCompletedEvent
        print(ResponseCompletedEvent.__pydantic_complete__)

asyncio.run(start())
"""


def _started(engines: Engines, api: str) -> str:
    code = _CODE.format(engines=asdict(engines), api=api)
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1]


def test_the_sdks_types_are_made_before_the_first_answer_holds_up_others(engines: Engines) -> None:
    assert _started(engines, "responses") == "True"
    assert _started(engines, "chat") == "False", "nobody waits for what nobody needs"
