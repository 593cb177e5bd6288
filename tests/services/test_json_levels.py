"""JSON from outside that is nested too deeply is refused before a parser spends memory or stack on it."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from services.errors import InvalidInput
from services.json_levels import MOST_LEVELS, TooDeep, check_levels, shallow_json
from services.llm.json_text import json_values
from services.llm.streams.call_pieces import ToolCallPieces
from services.transfer.lines import BadLine, parse
from services.transfer.vendors.archive import Archive
from services.validation import strict_json

DEEPEST = "[" * MOST_LEVELS + "]" * MOST_LEVELS
TOO_DEEP = f"[{DEEPEST}]"
_READ = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))
from services.errors import InvalidInput
from services.transfer.vendors.archive import Archive
try:
    list(Archive(Path(sys.argv[1]), members="json").records(lambda count: None))
except InvalidInput as error:
    print(error.message)
"""


@pytest.mark.parametrize("text", [TOO_DEEP, '{"a":' * 65, "[" * 300_000, '["\\"",' * 65, '[{"a":"]}"},' * 65])
def test_what_has_too_many_levels_is_refused(text: str) -> None:
    for given in (text, text.encode()):
        with pytest.raises(TooDeep):
            check_levels(given)
        with pytest.raises(ValueError, match="more than 64 levels"):
            shallow_json(given)
        with pytest.raises(ValueError, match="more than 64 levels"):
            strict_json(given)


@pytest.mark.parametrize("value", ["[" * 500, '{"' * 500, '\\"[[' * 500, [[]] * 500, json.loads(DEEPEST)])
def test_brackets_in_texts_and_beside_each_other_are_no_levels(value: Any) -> None:
    text = json.dumps(value)
    assert shallow_json(text) == strict_json(text.encode()) == value


def test_a_line_of_an_import_says_that_it_is_too_deep() -> None:
    with pytest.raises(BadLine, match="has more than 64 levels"):
        parse(json.dumps({"kind": "core_memory", "content": json.loads(TOO_DEEP)}).encode())


def test_a_models_answer_that_is_too_deep_holds_nothing() -> None:
    assert json_values(f'{TOO_DEEP} and {{"a": 1}}') == [{"a": 1}]
    assert json_values(f"{TOO_DEEP[:-1]},]") == []
    assert json_values(f"[{DEEPEST[1:-1]}]") == [json.loads(DEEPEST)]
    assert json_values("[" * 50_000) == []


def test_arguments_of_a_tool_that_are_too_deep_are_none() -> None:
    pieces = ToolCallPieces()
    call = {"index": 0, "id": "c", "function": {"name": "remember", "arguments": f'{{"text": {TOO_DEEP}}}'}}
    pieces.add(call)
    calls, invalid, _ = pieces.whole()
    assert calls == []
    assert [each["name"] for each in invalid] == ["remember"]


def _archive(folder: Path, content: str) -> Path:
    path = folder / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("conversations.json", content)
    return path


@pytest.mark.parametrize("begins", ["[", '{"a":', '[{"a":'])
def test_a_small_archive_takes_no_memory(begins: str, tmp_path: Path) -> None:
    path = _archive(tmp_path, begins * 300_000)
    command = [sys.executable, "-c", _READ, str(path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "conversations.json, record 1: has more than 64 levels" in told


def test_records_before_one_that_is_too_deep_are_read(tmp_path: Path) -> None:
    path = _archive(tmp_path, f'[{{"a": {DEEPEST[2:-2]}}}, {TOO_DEEP}]')
    records = Archive(path, members="json").records(lambda _: None)
    place, record = next(records)
    assert (place.number, list(record)) == (1, ["a"])
    with pytest.raises(InvalidInput, match="record 2: has more than 64 levels"):
        next(records)
