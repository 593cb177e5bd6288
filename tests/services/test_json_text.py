import json

import pytest

from services.encryption.marks import json_bytes


@pytest.mark.parametrize("value", [{"a": 2**70}, {1: "a"}, ["\ud800"], "图片"])
def test_what_is_written_reads_the_same(value: object) -> None:
    assert json.loads(json_bytes(value)) == json.loads(json.dumps(value))
