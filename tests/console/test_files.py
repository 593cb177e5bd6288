"""The console's files: what is vendored, which words there are, and what a page may load."""

import gzip
import hashlib
import json
import re

import httpx

from api.pages import FILES
from services.bootstrap import Services

OWN_MODULES = sorted(path for path in FILES.rglob("*.js") if "vendor" not in path.parts)
MOST_LINES = 5_500
MOST_BYTES_AT_FIRST = 130_000
"""Of what the first picture needs, compressed."""
KEY = re.compile(r"\bt\(\s*'([a-z_0-9.]+)'")
WORD = re.compile(r"\bword\(\s*'([a-z_]+)'")


def _strings(language: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((FILES / "strings" / f"{language}.json").read_text("utf-8"))
    return found


def test_vendored_files_are_those_of_the_manifest() -> None:
    manifest = json.loads((FILES / "vendor" / "manifest.json").read_text("utf-8"))
    assert {each["file"] for each in manifest} == {path.name for path in FILES.glob("vendor/*.js")}
    for each in manifest:
        assert hashlib.sha256((FILES / "vendor" / each["file"]).read_bytes()).hexdigest() == each["sha256"]
        assert each["package"]
        assert each["version"]
        assert each["licence"]


def test_both_languages_have_the_same_strings_with_the_same_values() -> None:
    english, chinese = _strings("en"), _strings("zh")
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert set(re.findall(r"{(\w+)", text)) == set(re.findall(r"{(\w+)", chinese[key])), key


def test_modules_are_short_write_no_html_by_themselves_and_name_strings_that_exist() -> None:
    strings = _strings("en")
    prefixes = {key.split(".")[0] for key in strings}
    for path in OWN_MODULES:
        source = path.read_text("utf-8")
        assert not [key for key in KEY.findall(source) if key not in strings], path.name
        assert not [prefix for prefix in WORD.findall(source) if prefix not in prefixes], path.name
        assert source.count("\n") < 300, path.name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|\beval\(|new Function", source
        ), path.name
        assert "http://" not in source, path.name
        assert "https://" not in source, path.name


async def test_the_front_page_is_the_console_with_a_strict_policy(client: httpx.AsyncClient) -> None:
    front = await client.get("/")
    assert (front.status_code, front.headers["location"]) == (307, "console")
    page = await client.get("/console")
    policy = page.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|style=", page.text)
    for address in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        found = await client.get(address)
        assert found.status_code == 200, address
        assert found.headers["content-security-policy"] == policy
        again = await client.get(address, headers={"If-None-Match": found.headers["etag"]})
        assert again.status_code == 304


def test_the_console_keeps_within_its_size() -> None:
    own = [*OWN_MODULES, *FILES.rglob("*.css"), FILES / "index.html"]
    assert sum(len(path.read_text("utf-8").splitlines()) for path in own) <= MOST_LINES
    page = (FILES / "index.html").read_text("utf-8")
    first = [FILES / name for name in re.findall(r'(?:src|href)="console/static/([^"]+)"', page)]
    first += [FILES / "index.html", FILES / "strings" / "zh.json"]
    assert sum(len(gzip.compress(path.read_bytes())) for path in first) <= MOST_BYTES_AT_FIRST


async def test_every_background_job_has_a_name_in_both_languages(services: Services) -> None:
    tasks = {name for name in services.jobs.app.tasks if "builtin" not in name}
    for language in ("en", "zh"):
        assert {key.removeprefix("task.") for key in _strings(language) if key.startswith("task.")} == tasks
