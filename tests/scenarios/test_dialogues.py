"""Every file of `dialogues/` is played as it is written."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scenarios.loading import dialogue_files, load
from tests.scenarios.player import DialogueFailed, Player
from tests.scenarios.stage import Stage

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("path", dialogue_files(), ids=lambda path: path.stem)
async def test_a_dialogue(path: Path, stage: Stage, record_property: Callable[[str, object], None]) -> None:
    dialogue = load(path)
    for name, value in (("dialogue", dialogue.title), ("language", dialogue.language), ("file", path.stem)):
        record_property(name, value)
    try:
        await Player(dialogue, path.name, stage, await stage.house(dialogue)).play()
        wrong = ""
    except DialogueFailed as failed:
        wrong = str(failed)
    if wrong:
        pytest.fail(wrong, pytrace=False)
