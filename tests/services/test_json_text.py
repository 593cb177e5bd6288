import json

import pytest

from services.json_text import json_bytes, json_value

_DEEP = "[" * 900 + "]" * 900


@pytest.mark.parametrize(
    "text",
    [
        "123456789012345678901234567890",
        "-0.5",
        '{"a": [1, null, true]}',
        '"\\ud83d\\ude00 \\u0000"',
        "1e400",
        _DEEP,
    ],
)
def test_a_column_reads_as_the_driver_would_read_it(text: str) -> None:
    assert json_value(text) == json_value(text.encode()) == json.loads(text)


@pytest.mark.parametrize("value", [{"a": 2**70}, {1: "a"}, ["\ud800"], "图片"])
def test_what_is_written_reads_the_same(value: object) -> None:
    assert json.loads(json_bytes(value)) == json.loads(json.dumps(value))


def test_what_is_no_json_is_an_error() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        json_value('{"a": ')
