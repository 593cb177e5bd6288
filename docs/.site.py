"""How the pages become the site: no screenshots, and each language with its menu, its chrome and its search."""

import json
import logging
import re
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import jieba
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

jieba.setLogLevel(logging.WARNING)  # it tells each time that it has read its dictionary

_CHINESE = "zh/"
_MENU = "中文"
"""Section of the navigation that is the menu of the Chinese pages."""

_NOT_SOUGHT = "decisions/"
"""Pages that say why it is built as it is: they use every word, and answer no question of how."""
_FOUND_LATER = {
    "benchmarks.md": 0.1,
    "dependencies.md": 0.1,
}
"""How much less than others pages weigh in a search that say why, or what only developers ask."""

_SCREENSHOT = re.compile(r"^!\[[^\]]*\]\([^)]*\.png\)\n+", re.MULTILINE)
_SEARCH = 'data-md-component="search" role="dialog"'
_BASE = re.compile(r'("base": )"([^"]*)"')
_SHORT_NAME = re.compile(r"(?<=<td>)<code>(?=[^<]{1,34}</code>)")
_menus: dict[bool, Navigation] = {}


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the page without screenshots, so that the site fits into the wheel."""
    if page.file.src_uri.startswith(_NOT_SOUGHT):
        page.meta["search"] = {"exclude": True}
    if boost := next((boost for name, boost in _FOUND_LATER.items() if page.file.src_uri.startswith(name)), None):
        page.meta["search"] = {"boost": boost}
    return _SCREENSHOT.sub("", markdown)


def on_page_content(html: str, **_: object) -> str:
    """Keep short names that begin a cell in one line."""
    return _SHORT_NAME.sub('<code class="whole">', html)


def on_nav(nav: Navigation, **_: object) -> None:
    """Divide the navigation into one menu for each language."""
    chinese = next(item for item in nav if isinstance(item, Section) and item.title == _MENU)
    english = [item for item in nav if item is not chinese]
    for of_chinese, items in ((False, english), (True, chinese.children)):
        pages = list(_pages(items))
        pages[0].previous_page = pages[-1].next_page = None
        _menus[of_chinese] = Navigation(items, pages)


def on_template_context(context: MutableMapping[str, Any], **_: object) -> None:
    """Give the page for missing pages the English menu."""
    _speak(context, chinese=False)


def on_page_context(context: MutableMapping[str, Any], page: Page, **_: object) -> None:
    """Give a page the menu and the chrome of its language, and the way to the other one."""
    chinese = page.file.src_uri.startswith(_CHINESE)
    _speak(context, chinese)
    same = page.file.src_uri.removeprefix(_CHINESE) if chinese else _CHINESE + page.file.src_uri
    others = {each.file.src_uri: each for each in _menus[not chinese].pages}
    context["other_language"] = others.get(same) or _menus[not chinese].pages[0]


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Name the search, and let a Chinese page search from its own folder on."""
    if not page.file.src_uri.startswith(_CHINESE):
        return _named(output, "Search")
    output = _named(output, "搜索")
    return _BASE.sub(lambda found: f'{found[1]}"{found[2].removeprefix("..").removeprefix("/") or "."}"', output)


def on_post_template(output_content: str, **_: object) -> str:
    """Name the search of the page for missing pages."""
    return _named(output_content, "Search")


def _named(output: str, name: str) -> str:
    """Give the dialog of the search the name that the theme leaves out: screen readers say it."""
    return output.replace(_SEARCH, f'{_SEARCH} aria-label="{name}"')


_FIELDS = {"title": {"boost": 1e3}, "text": {"boost": 1.0}, "tags": {"boost": 1e4}}
"""Weights of what is found where; a tag is another word for what a section is about."""
_ALL_WORDS_FIRST = (
    # What holds all words comes first, and not what holds one of them in its title. A page is preferred to a
    # section by less than a word.
    (
        r"\+!(\w)\.parent\+(Object\.values\(\w\)\.filter\(\w=>\w\)\.length/Object\.keys\(\w\)\.length)",
        r"+!\1.parent*.03+\2",
    ),
    (r"score:(\w)\*\(1\+(\w)\((\w),2\)\)", r"score:\1*\2(1e12,\3)"),
    # Each word gets its wildcard once: with two of them a Chinese word never counts as found.
    (r'\.join\("\* "\)', r'.join(" ")'),
    # Stop words are not sought: with the wildcard that each word gets, “a” would find every word that begins so.
    (
        r"\.map\((\w)=>/\(\[~\^\]\$\)/",
        r".filter((w,_,all)=>{let s=x=>lunr.stopWordFilter(x.toLowerCase());return s(w)||!all.some(s)})\g<0>",
    ),
    # A run of Chinese is divided into words up to its last character, which the theme leaves out.
    (r"(\w)=(\w)\+1;\1<(\w)\.length;\1\+\+\)\3\.slice\(", r"\1=\2+1;\1<=\3.length;\1++)\3.slice("),
    (r"(\w\[\w\]&&\w<\w\.length)-1&&", r"\1&&"),
    # A Chinese word that touches a name (API密钥) is a word of its own.
    (r"(\w=>)(\[\.\.\.\w+\(\w,this\.index\.invertedIndex\)\]\.join\(\" \"\))", r'\1" "+\2+" "'),
    # English words are sought by their stems, as they are indexed: a word with a wildcard is not stemmed.
    (
        r":`\$\{(\w)\}\*`\)",
        r":`${/^\\w+$/.test(\1)?lunr.stemmer(new lunr.Token(\1.toLowerCase())):\1}*`)",
    ),
)
"""Changes of the theme's search: patterns in its worker, of the pinned version, and their replacements."""


@event_priority(-100)
def on_post_build(config: MutableMapping[str, Any], **_: object) -> None:
    """Give each language an index of its own pages, and a search that finds all words first."""
    site = Path(config["site_dir"])
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    synonyms = json.loads((Path(config["docs_dir"]) / ".synonyms.json").read_text("utf-8"))
    if unknown := synonyms.keys() - {entry["location"] for entry in index["docs"]}:
        raise PluginError(f"docs/.synonyms.json names what no page has: {sorted(unknown)}")
    for folder in ("", _CHINESE):
        docs = [
            {**entry, "location": entry["location"].removeprefix(folder), **_tags(synonyms.get(entry["location"]))}
            for entry in index["docs"]
            if entry["location"].startswith(_CHINESE) == bool(folder)
        ]
        told = {**index["config"], "lang": ["en", "zh"] if folder else ["en"], "fields": _FIELDS}
        told["pipeline"] = ["stemmer", "stopWordFilter"]
        file = site / folder / "search/search_index.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"config": told, "docs": docs}, ensure_ascii=False, separators=(",", ":"))
        file.write_text(text, "utf-8")
    (worker,) = site.glob("assets/javascripts/workers/search.*.js")
    script = worker.read_text("utf-8")
    for pattern, instead in _ALL_WORDS_FIRST:
        script, count = re.subn(pattern, instead, script)
        if count != 1:
            raise PluginError(f"the theme's search has changed: {pattern} is found {count} times")
    worker.write_text(script, "utf-8")


def _tags(words: list[str] | None) -> dict[str, list[str]]:
    return {"tags": words} if words else {}


def _speak(context: MutableMapping[str, Any], chinese: bool) -> None:
    config, menu = context["config"], _menus[chinese]
    config.theme["language"] = "zh" if chinese else "en"
    config.extra["homepage"] = menu.pages[0].url
    context.update(nav=menu, is_chinese=chinese)


def _pages(items: list[Any]) -> Iterator[Page]:
    for item in items:
        if isinstance(item, Page):
            yield item
        elif isinstance(item, Section):
            yield from _pages(item.children)
