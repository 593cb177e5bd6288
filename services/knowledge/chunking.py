"""Cuts a document's text into chunks: at its headings first, then at paragraphs, sentences and clauses."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from services.knowledge.document import Chunk, Converted
from services.llm.token_estimates import count_tokens
from services.text.passages import cut

CHUNK_TOKENS = 350
_OVERLAP_TOKENS = 40
HEADING_SEPARATOR = " > "

_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_CLOSING = re.compile(r"(?:^|[ \t])#+$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_MARKS = re.compile(r"[*`]|(?<!\w)_|_(?!\w)")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_DELIMITER_ROW = re.compile(r"^[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$", re.MULTILINE)
_CELL_END = re.compile(r"(?<!\\)\|")
_LEAST_ROOM = 100
"""Minimum tokens that a table's header must leave to its rows."""
_MOST_HEADING_CHARACTERS = 120
_MOST_TITLE_CHARACTERS = 200

_Section = tuple[tuple[str, ...], str]
"""A stretch of text with the headings above it."""


def chunks_of(document: Converted) -> list[Chunk]:
    """Return the chunks of a document in order: at most about 350 tokens each, none without a letter or digit.

    Texts under different headings are never joined, however short they are, because the heading says what they are
    about. The end of a chunk of long text is repeated at the beginning of the next; a chunk of a long table
    repeats its header.
    """
    found = []
    for part in document.parts:
        text = part.text.replace("\r\n", "\n").replace("\r", "\n")
        for headings, section in sections(text) if document.headings else [((), text)]:
            heading = HEADING_SEPARATOR.join(headings)
            pieces = [piece for text, is_table in _stretches(section) for piece in _cut(text, is_table)]
            found += [Chunk(heading, part.page, piece.strip()) for piece in pieces if any(map(str.isalnum, piece))]
    return found


def _stretches(section: str) -> Iterator[tuple[str, bool]]:
    """Yield the stretches of a section in order, each with whether it is a table too long for one chunk."""
    if not _DELIMITER_ROW.search(section) or count_tokens(section) <= CHUNK_TOKENS:
        yield section, False
        return
    lines = section.split("\n")
    begin = at = 0
    while at < len(lines) - 1:
        if not (lines[at].lstrip().startswith("|") and _DELIMITER_ROW.fullmatch(lines[at + 1])):
            at += 1
            continue
        end = next((n for n in range(at + 2, len(lines)) if not lines[n].lstrip().startswith("|")), len(lines))
        if before := "\n".join(lines[begin:at]).strip("\n"):
            yield before, False
        yield "\n".join(lines[at:end]), True
        begin = at = end
    if rest := "\n".join(lines[begin:]).strip("\n"):
        yield rest, False


def _cut(text: str, is_table: bool) -> Iterator[str]:
    """Cut a stretch into the texts of chunks; each chunk of a table begins with its header."""
    if not is_table:
        yield from _pieces(text, CHUNK_TOKENS, _OVERLAP_TOKENS)
        return
    header, delimiter, *rows = text.split("\n")
    above = f"{header}\n{delimiter}\n"
    room = CHUNK_TOKENS - count_tokens(above)
    if room < _LEAST_ROOM:  # a header as long as a chunk: each row names its own columns
        for row in rows:
            yield from _pieces(_named(header, row), CHUNK_TOKENS, _OVERLAP_TOKENS)
        return
    kept: list[str] = []
    size = 0
    for row in rows:
        tokens = count_tokens(row)
        if kept and size + tokens > room:
            yield above + "\n".join(kept)
            kept, size = [], 0
        if tokens > room:
            yield from (above + piece for piece in _pieces(row, room, 0))
            continue
        kept.append(row)
        size += tokens
    if kept:
        yield above + "\n".join(kept)


def _named(header: str, row: str) -> str:
    pairs = zip(_CELL_END.split(header.strip().strip("|")), _CELL_END.split(row.strip().strip("|")), strict=False)
    return "; ".join(f"{name.strip()}: {cell.strip()}" for name, cell in pairs if cell.strip())


def _pieces(text: str, most: int, overlap: int) -> Iterator[str]:
    return cut(text, most=most, overlap=overlap, length=count_tokens)


def title_of(document: Converted, source: str) -> str:
    """Return the document's title, or else its first heading of the highest level, or else its name."""
    if document.title:
        return document.title[:_MOST_TITLE_CHARACTERS]
    if document.headings and document.parts:
        for headings, _ in sections(document.parts[0].text):
            if headings:
                return headings[0]
    return PurePosixPath(source).stem[:_MOST_TITLE_CHARACTERS]


def sections(markdown: str) -> Iterator[_Section]:
    """Yield the sections of a Markdown text, in order; a `#` inside a code block is no heading."""
    path: dict[int, str] = {}
    lines: list[str] = []
    fence = ""
    for line in _FRONT_MATTER.sub("", markdown, count=1).split("\n"):
        if opened := _FENCE.match(line):
            mark = opened.group(1)
            if not fence:
                fence = mark
            elif mark.startswith(fence) and not line.strip().strip(mark[0]):
                fence = ""
        heading = None if fence else _heading(line, lines)
        if heading is None:
            lines.append(line)
            continue
        level, name = heading
        yield from _section(path, lines)
        lines = []
        path = {depth: text for depth, text in path.items() if depth < level}
        if name:
            path[level] = name
    yield from _section(path, lines)


def _heading(line: str, before: list[str]) -> tuple[int, str] | None:
    if match := _HEADING.match(line):
        return len(match.group(1)), _plain(_CLOSING.sub("", line[match.end() :].strip()))
    # An underlined line that is a whole paragraph is a heading too.
    if (match := _UNDERLINE.fullmatch(line)) and before and before[-1].strip():
        alone = len(before) == 1 or not before[-2].strip()
        if alone and not before[-1].lstrip().startswith(("-", "*", ">", "|", "#")):
            return (1 if match.group(1)[0] == "=" else 2), _plain(before.pop())
    return None


def _plain(heading: str) -> str:
    return _MARKS.sub("", heading).strip()[:_MOST_HEADING_CHARACTERS]


def _section(path: dict[int, str], lines: list[str]) -> Iterator[_Section]:
    text = "\n".join(lines).strip("\n")
    if text.strip():
        yield tuple(path[depth] for depth in sorted(path)), text
