"""The machine's locale."""

import pytest

from services.platform.machine import machine_locale


@pytest.mark.parametrize(
    ("environment", "locale"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh-CN"),
        ({"LANG": "de_DE@euro", "LC_MESSAGES": "en_GB.UTF-8"}, "en-GB"),
        ({"LANG": "de_DE", "LC_ALL": "C.UTF-8"}, None),
        ({"LANG": "§"}, None),
        ({}, None),
    ],
)
def test_the_locale_is_that_of_messages(environment: dict[str, str], locale: str | None) -> None:
    assert machine_locale(environment) == locale
