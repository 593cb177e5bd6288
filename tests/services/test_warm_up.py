"""What a fresh process has imported and loaded, step by step until its first turn."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

_BEGIN = """
import asyncio, os, sys, threading, time

def loaded(*names):
    print(*(name for name in names if name in sys.modules), sep=",")
"""
_WITHOUT_A_MODEL = """
import api.cli.main
loaded("redis", "langchain_core", "langgraph", "fastapi", "numpy")
import api.app, graph.builder, services.bootstrap, services.llm.chat_models
import services.memory.wiring, services.knowledge.wiring, services.summaries.daily_scheduler
from services.text import tokenizer as terms
from services.platform.milvus import pymilvus
from services.platform.settings import load_settings
from services.warm_up import warm_up
heavy = ("openai", "langchain_openai", "aiohttp", "pandas", "pymilvus", "sqlalchemy", "alembic", "jieba", "opencc")
heavy += ("mcp",)
loaded(*heavy)
asyncio.run(warm_up(load_settings()))
assert terms._loaded
for _ in range(100):  # a thread that has just ended is there for a moment longer
    extra = len(os.listdir("/proc/self/task")) - threading.active_count()
    if not extra:
        break
    time.sleep(0.02)
print(extra)
pymilvus()
loaded(*heavy)
"""
_WITH_A_MODEL = """
model = dict(llm_model="m", llm_base_url="http://127.0.0.1:1", llm_api_key="k")
for api in ("chat", "responses"):
    asyncio.run(warm_up(load_settings(**model, llm_api=api)))
    loaded("langchain_openai", "aiohttp")
"""
"""What follows in the same process: a turn without a model has loaded no client of one."""


def _lines(code: str, *arguments: Path) -> list[str]:
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _BEGIN + code, *map(str, arguments)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_nothing_is_imported_before_it_is_needed_and_the_models_client_before_the_first_turn() -> None:
    commands, start, threads, warm, *with_a_model = _lines(_WITHOUT_A_MODEL + _WITH_A_MODEL)
    assert commands == ""
    assert start == ""
    assert threads == "0", "numpy started worker threads, which spin"
    assert warm == "pandas,pymilvus,jieba,opencc"
    assert with_a_model == ["langchain_openai,aiohttp"] * 2


_WITH_ITS_ENCODER = """
from services.llm.builtin_embeddings import BuiltinEncoder
from services.platform.settings import load_settings
from services.warm_up import load_encoder
for model in ({"embedding_model": "m", "embedding_base_url": "http://127.0.0.1:1", "embedding_dim": 8}, {}):
    asyncio.run(load_encoder(load_settings(data_dir=sys.argv[1], **model)))
    print(BuiltinEncoder().loaded)
"""


def test_the_encoder_is_loaded_where_it_is_used(tmp_path: Path) -> None:
    assert _lines(_WITH_ITS_ENCODER, tmp_path) == ["False", "True"]
