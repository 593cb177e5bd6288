"""Whole prompts, kept as files. To write them after a wanted change:

REWRITE_PROMPTS=1 .venv/bin/python -m pytest tests/golden
"""

import os
from pathlib import Path

import pytest

from services.bootstrap import Services
from tests.golden.situations import NATIVE, SITUATIONS, Situation, as_text, prompt_of

FOLDER = Path(__file__).parent / "prompts"
MOST_FIXED_TOKENS = 740
"""Of a new user's first prompt, the tools' descriptions included, besides the message."""


@pytest.mark.parametrize("situation", [*SITUATIONS, NATIVE], ids=lambda situation: situation.name)
async def test_the_prompt_is_the_one_in_its_file(shared_services: Services, situation: Situation) -> None:
    file = FOLDER / f"{situation.name}.txt"
    text = as_text(situation, shared_services)
    if os.environ.get("REWRITE_PROMPTS"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text, "if the change is wanted: REWRITE_PROMPTS=1"


async def test_the_first_prompt_of_a_new_user_is_short(services: Services) -> None:
    tokens = prompt_of(SITUATIONS[0], services).report["tokens"]
    assert sum(size for name, size in tokens.items() if name != "message") <= MOST_FIXED_TOKENS


def test_every_file_has_its_situation() -> None:
    names = {situation.name for situation in (*SITUATIONS, NATIVE)}
    assert {file.stem for file in FOLDER.glob("*.txt")} == names
