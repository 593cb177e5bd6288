"""The type of a document, from its declaration, name and first bytes; and its encoding.

Text is in UTF-8, in UTF-16 with a byte order mark, or in an encoding that Chinese files use without saying so.
Nearly any bytes can be decoded as GB18030, and many as Big5. The right encoding is the one in which most
characters are frequent characters of the language.
"""

import codecs
import re
import unicodedata
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Literal

from services.knowledge.document import BadDocument, UnknownKind

Kind = Literal["text", "markdown", "html", "pdf", "docx", "xlsx", "csv"]

MEDIA_TYPES: dict[Kind, str] = {
    "text": "text/plain",
    "markdown": "text/markdown",
    "html": "text/html",
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "csv": "text/csv",
}
SUFFIXES: dict[str, Kind] = {
    **dict.fromkeys((".txt", ".text"), "text"),
    **dict.fromkeys((".md", ".markdown"), "markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **{".pdf": "pdf", ".docx": "docx", ".xlsx": "xlsx"},
}
_KINDS: dict[str, Kind] = {
    **{media_type: kind for kind, media_type in MEDIA_TYPES.items()},
    "text/x-markdown": "markdown",
    "application/xhtml+xml": "html",
    "text/tab-separated-values": "csv",
    "application/csv": "csv",
}
_SAYS_NOTHING = frozenset({"", "application/octet-stream", "application/x-www-form-urlencoded"})
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_EXCEL = "application/vnd.ms-excel"
_ACCEPTED = "plain text, Markdown, HTML, PDF, DOCX, XLSX and CSV are read"


def kind_of(source: str, content_type: str, data: bytes) -> Kind:
    """Return the type of a document.

    Args:
        source: Its name; the ending counts if the content type says nothing.
        content_type: Content type as in HTTP; may be empty.

    Raises:
        UnknownKind: Its type is not supported.
        BadDocument: It is empty, or not what it claims to be.
    """
    if not data.strip():
        raise BadDocument("is empty")
    said = content_type.partition(";")[0].strip().lower()
    suffix = PurePosixPath(source).suffix.lower()
    kind = SUFFIXES.get(suffix) if said in _SAYS_NOTHING else _KINDS.get(said)
    if kind == "text" and (named := SUFFIXES.get(suffix)) in {"markdown", "csv"}:
        kind = named  # many programs send it so
    if said == _EXCEL and suffix == ".csv":
        kind = "csv"  # what browsers say where Excel is installed
    if kind is None:
        raise UnknownKind(f"is of an unknown kind ({said or suffix or 'no ending'}); {_ACCEPTED}")
    if kind == "pdf" and b"%PDF-" not in data[:1024]:
        raise BadDocument("is no PDF, although it is said to be one")
    if kind in {"docx", "xlsx"} and data.startswith(_OLD_OFFICE):
        raise BadDocument("is encrypted, or of an Office before 2007")
    if kind in {"docx", "xlsx"} and not data.startswith(b"PK"):
        raise BadDocument(f"is no {kind.upper()}, although it is said to be one")
    return kind


_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CONTROL_BYTE = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_BYTES_FOR_CONTROL = 500
"""Bytes of a text for each control character that it may hold: some programs leave a few."""
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_KANA = re.compile(r"[\u3041-\u30fe]")

_CHINESE = ("gb18030", "big5hkscs", "cp950")
_OTHERS = {"cp932": "Shift_JIS", "euc_jp": "EUC-JP", "cp949": "EUC-KR"}
"""Other encodings that can be mistaken for Chinese ones, with their usual names."""
_TOUCHES_LATIN = re.compile(r"[A-Za-z][\u4e00-\u9fff]|[\u4e00-\u9fff][A-Za-z]")
_WITHIN_WORDS = re.compile(r"(?<=[A-Za-z])[À-ÿŠšŽžŒœŸ]|[À-ÿŠšŽžŒœŸ](?=[A-Za-z])")
_WESTERN_SIGNS = frozenset("\xa0“”‘’„‚–—…•€£¥¢§°±²³·¹º»«½¼¾®©™¿¡×÷µª")
_ENOUGH = 0.15
"""Minimum share of frequent characters in text; other bytes have about a tenth."""
_ASCII = 0x7F
_SAMPLE = 100_000
"""Maximum characters that are examined."""
_DECLARED = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})|<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([\w.:-]{2,40})",
    re.IGNORECASE,
)
_PROLOGUE_BYTES = 8192
_REFUSED = "is not text in UTF-8, UTF-16, GB18030, Big5 or Windows-1252"


def decoded(data: bytes, *, declared: str = "") -> str:
    """Return the text of a file; `declared` is the encoding that it names itself, which may be wrong. Raises
    `BadDocument` if it is binary, or in another encoding."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = _decode(data, "utf-16")
        if text is None:
            raise BadDocument(_REFUSED)
        return _checked(text)
    # No control is a byte of a character in any of these encodings.
    if b"\x00" in data or len(_CONTROL_BYTE.findall(data)) * _BYTES_FOR_CONTROL > len(data):
        raise BadDocument("is binary, not text")
    data = _CONTROL_BYTE.sub(b"", data)
    text = _decode(data, "utf-8-sig")
    return _checked(_of_other_encoding(data, declared) if text is None else text)


def declared_in_html(data: bytes) -> str:
    """Return the encoding that a page names; empty if it names none."""
    found = _DECLARED.search(data[:_PROLOGUE_BYTES])
    return (found[1] or found[2]).decode() if found else ""


def _of_other_encoding(data: bytes, declared: str) -> str:
    texts = {name: text for name in (*_CHINESE, *_OTHERS) if (text := _decode(data, name)) is not None}
    scores = {name: _share_of_frequent(text, data) for name, text in texts.items()}
    best = max(scores, key=lambda name: scores[name], default="")
    if best in _CHINESE and scores[best] >= _ENOUGH:
        return texts[best]
    if not any(scores.values()) and _is_gb2312(texts.get("gb18030", "")):
        return texts["gb18030"]
    named = _decode(data, declared) if declared else None
    if named is not None:
        return named
    western = _decode(data, "cp1252")
    if western is not None and _is_western(western):
        return western
    if best in _OTHERS and scores[best] >= _ENOUGH:
        raise BadDocument(f"seems to be in {_OTHERS[best]}; save it in UTF-8")
    raise BadDocument(_REFUSED)


def _share_of_frequent(text: str, data: bytes) -> float:
    """Return the share of frequent characters, counted per two bytes so that encodings can be compared."""
    sample = _NOT_ASCII.findall(text[:_SAMPLE])
    symbols = sum(unicodedata.category(each)[0] in "PSZ" for each in sample)
    found = sum(each in _frequent() or _KANA.match(each) is not None for each in sample)
    pairs = len(sample) if len(text) > _SAMPLE else sum(byte > _ASCII for byte in data) / 2
    return found / max(1.0, pairs - symbols) if found else 0.0


def _is_gb2312(text: str) -> bool:
    """Whether all characters are of the common Chinese set: its symbols, such as those of a frame, and rare
    hanzi. A hanzi that touches a Latin letter is two accented letters of another language."""
    foreign = set(_NOT_ASCII.findall(text[:_SAMPLE]))
    if not foreign or _TOUCHES_LATIN.search(text[:_SAMPLE]):
        return False
    return all(unicodedata.category(each)[0] in "PSZN" or each.encode("gb2312", "ignore") for each in foreign)


def _is_western(text: str) -> bool:
    """Return whether all characters beyond ASCII are signs, or letters within words of a Western language."""
    foreign = _NOT_ASCII.findall(text[:_SAMPLE])
    letters = sum(each.isalpha() for each in foreign)
    if len(_WITHIN_WORDS.findall(text[:_SAMPLE])) < letters or letters * 4 > sum(map(str.isalpha, text[:_SAMPLE])):
        return False
    return all(each.isalpha() or each in _WESTERN_SIGNS for each in foreign)


@lru_cache(maxsize=1)
def _frequent() -> frozenset[str]:
    """Return the most frequent characters of Chinese in both scripts, and syllables of Korean."""
    folder = Path(__file__).parent
    files = ("frequent_characters.txt", "frequent_syllables.txt")
    return frozenset("".join((folder / name).read_text("utf-8") for name in files)) - {"\n"}


def _decode(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _checked(text: str) -> str:
    if _CONTROL.search(text):
        raise BadDocument("is binary, not text")
    return text
