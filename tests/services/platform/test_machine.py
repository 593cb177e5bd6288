"""The machine's time zone and locale."""

import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from services.platform.machine import Offset, machine_locale, machine_timezone, zone_doubt
from tests.support.fork_server import ROOT

ZONES = Path("/usr/share/zoneinfo")
_ASK = """
import json, sys
from pathlib import Path
from services.platform.machine import machine_timezone, zone_doubt
print(json.dumps([machine_timezone(), zone_doubt()]))
"""


def _in_process(zone: str) -> tuple[str, str | None]:
    """What a process with this TZ finds: its C library reads the variable."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TZ": zone}
    ran = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, check=True, env=environment)
    found, doubt = json.loads(ran.stdout)
    return found, doubt


def _offset(name: str) -> Offset:
    zone = ZoneInfo(name)

    def at(moment: float) -> float:
        offset = datetime.fromtimestamp(moment, zone).utcoffset()
        assert offset is not None
        return offset.total_seconds()

    return at


@pytest.mark.process
@pytest.mark.parametrize(
    ("given", "found", "doubtful"),
    [
        ("Asia/Shanghai", "Asia/Shanghai", False),
        (":America/Lima", "America/Lima", False),
        ("CST-8", "+08:00", False),
        ("UTC-8", "+08:00", False),
        ("<+0530>-5:30", "+05:30", False),
        ("EST5", "-05:00", False),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "Europe/Berlin", False),
        ("/usr/share/zoneinfo/Asia/Shanghai", "Asia/Shanghai", False),
        ("'Asia/Shanghai'", "Asia/Shanghai", True),
        ("Asia/Beijing", "UTC", True),
        ("UTC", "UTC", False),
        ("../../etc/passwd", "UTC", True),
    ],
)
def test_what_a_variable_means(given: str, found: str, doubtful: bool) -> None:
    if not ZONES.is_dir():
        pytest.skip("no zone database on this machine")
    zone, doubt = _in_process(given)
    assert zone == found
    assert (doubt is not None) is doubtful
    assert doubt is None or found in doubt


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


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York", "Europe/London", "Asia/Kolkata"])
def test_a_file_beside_a_text_that_says_utc_counts(tmp_path: Path, zone: str) -> None:
    found = _of_files(tmp_path, zone, name="Etc/UTC")
    if "/" not in found:  # without changes of clocks for decades the offset says as much
        assert found in {"+08:00", "+05:30"}
        return
    moments = [time.time() - day * 86_400 for day in range(0, 3650, 30)]
    assert [_offset(found)(moment) for moment in moments] == [_offset(zone)(moment) for moment in moments]


def test_a_machine_that_names_none_is_in_utc(tmp_path: Path) -> None:
    assert _of_files(tmp_path, "UTC") == "UTC"
    assert _of_files(tmp_path, "UTC", name="Mars/Olympus") == "UTC"


def test_a_zone_that_is_not_the_machines_is_doubtful() -> None:
    doubt = zone_doubt({}, _offset("UTC"), "Asia/Shanghai")
    assert doubt == "new users get Asia/Shanghai, which is not the time of this machine"
    assert zone_doubt({}, _offset("Asia/Shanghai"), "Asia/Shanghai") is None


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
