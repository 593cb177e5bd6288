"""The machine's time zone and locale."""

from pathlib import Path

import pytest

from services.platform.machine import machine_locale, machine_timezone


def _zone(folder: Path, *, link: str | None = None, name: str | None = None, **environment: str) -> str:
    localtime, timezone = folder / "localtime", folder / "timezone"
    if link:
        target = folder / link
        target.parent.mkdir(parents=True)
        target.write_bytes(b"")
        localtime.symlink_to(target)
    if name:
        timezone.write_text(f"{name}\n")
    return machine_timezone(environment, localtime, timezone)


def test_the_environment_names_the_zone_before_the_files_do(tmp_path: Path) -> None:
    found = _zone(tmp_path, link="usr/share/zoneinfo/Asia/Tokyo", name="Europe/Paris", TZ=":America/Lima")
    assert found == "America/Lima"


def test_a_link_names_the_zone_before_the_text_file_does(tmp_path: Path) -> None:
    assert _zone(tmp_path, link="usr/share/zoneinfo/Asia/Tokyo", name="Europe/Paris") == "Asia/Tokyo"


def test_the_text_file_names_it_where_the_link_does_not(tmp_path: Path) -> None:
    assert (
        _zone(tmp_path, link="usr/share/clocks/here", name="Europe/Paris", TZ="EST5EDT4,M3.2.0") == "Europe/Paris"
    )


def test_a_machine_that_names_none_is_in_utc(tmp_path: Path) -> None:
    assert _zone(tmp_path) == "UTC"
    assert _zone(tmp_path, name="Mars/Olympus", TZ="../../etc/passwd") == "UTC"


@pytest.mark.parametrize(
    ("environment", "locale"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh-CN"),
        ({"LANG": "de_DE@euro", "LC_MESSAGES": "en_GB.UTF-8"}, "en-GB"),
        ({"LANG": "de_DE", "LC_ALL": "C.UTF-8"}, None),
        ({"LANG": "POSIX"}, None),
        ({"LANG": "eo"}, "eo"),
        ({"LANG": "§"}, None),
        ({}, None),
    ],
)
def test_the_locale_is_that_of_messages(environment: dict[str, str], locale: str | None) -> None:
    assert machine_locale(environment) == locale
