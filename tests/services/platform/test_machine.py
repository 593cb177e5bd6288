"""The machine's locale and time zone."""

import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from services.platform.machine import Offset, machine_locale, machine_timezone
from tests.support.fork_server import ROOT

ZONES = Path("/usr/share/zoneinfo")
_ASK = """
from services.platform.machine import machine_timezone
print(machine_timezone())
"""


def _in_process(zone: str) -> str:
    """What a process with this TZ finds: its C library reads the variable."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TZ": zone}
    ran = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, check=True, env=environment)
    return ran.stdout.strip()


def _offset(name: str) -> Offset:
    zone = ZoneInfo(name)

    def at(moment: float) -> float:
        offset = datetime.fromtimestamp(moment, zone).utcoffset()
        assert offset is not None
        return offset.total_seconds()

    return at


@pytest.mark.process
@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("Asia/Shanghai", "Asia/Shanghai"),
        (":America/Lima", "America/Lima"),
        ("CST-8", "+08:00"),
        ("UTC-8", "+08:00"),
        ("<+0530>-5:30", "+05:30"),
        ("EST5", "-05:00"),
        ("/usr/share/zoneinfo/Asia/Shanghai", "Asia/Shanghai"),
        ("'Asia/Shanghai'", "Asia/Shanghai"),
        ("Asia/Beijing", "UTC"),
        ("UTC", "UTC"),
        ("../../etc/passwd", "UTC"),
    ],
)
def test_what_a_variable_means(given: str, found: str) -> None:
    if not ZONES.is_dir():
        pytest.skip("no zone database on this machine")
    assert _in_process(given) == found


def _of_files(folder: Path, clock: str, *, link: str | None = None, name: str | None = None) -> str:
    localtime, timezone = folder / "localtime", folder / "timezone"
    if link:
        target = folder / link
        target.parent.mkdir(parents=True)
        target.write_bytes(b"")
        localtime.symlink_to(target)
    if name:
        timezone.write_text(f"{name}\n")
    return machine_timezone({}, localtime, timezone, _offset(clock))


def test_a_link_names_the_zone_before_the_text_file_does(tmp_path: Path) -> None:
    linked = "usr/share/zoneinfo/Asia/Tokyo"
    assert _of_files(tmp_path, "Asia/Tokyo", link=linked, name="Asia/Seoul") == "Asia/Tokyo"


def test_the_text_file_names_it_where_the_link_does_not(tmp_path: Path) -> None:
    assert _of_files(tmp_path, "Europe/Paris", link="usr/share/clocks/here", name="Europe/Paris") == "Europe/Paris"


@pytest.mark.parametrize(("zone", "found"), [("Asia/Shanghai", "+08:00"), ("Asia/Kolkata", "+05:30")])
def test_a_file_beside_a_text_that_says_utc_counts(tmp_path: Path, zone: str, found: str) -> None:
    assert _of_files(tmp_path, zone, name="Etc/UTC") == found


def test_a_machine_that_names_none_is_in_utc(tmp_path: Path) -> None:
    assert _of_files(tmp_path, "UTC") == "UTC"
    assert _of_files(tmp_path, "UTC", name="Mars/Olympus") == "UTC"


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
