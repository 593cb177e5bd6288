"""The encodings that files are in without saying so."""

import pytest

from services.knowledge.document import BadDocument
from services.knowledge.encodings import declared_in_html, decoded

SIMPLIFIED = (
    "年假有八天，病假须提供证明。",
    "★ 菜单 ★ ①红烧肉……￥38 │ 早餐 │ → 外卖",
    "姓名,部门,分机\n王小明,财务部,8001\n李芳,人事部,8002\n",
    "饕餮 魑魅魍魉",
)
TRADITIONAL = ("年假有八天，病假須提供證明。", "這是一個測試文件，請員工每年申請特休假。")
JAPANESE = (
    "有給休暇は年に八日あります。病気の場合は証明書を提出してください。",
    "カタカナで書いた献立表",
    "休暇規程について",
)
KOREAN = ("연차는 팔 일이며 병가는 증명서를 제출해야 합니다.", "대한민국 서울의 날씨는 맑습니다.")


@pytest.mark.parametrize("text", SIMPLIFIED)
def test_simplified_chinese_with_its_symbols_is_read(text: str) -> None:
    assert decoded(text.encode("gb18030")) == text


@pytest.mark.parametrize("text", TRADITIONAL)
def test_traditional_chinese_is_read(text: str) -> None:
    assert decoded(text.encode("big5")) == text
    assert decoded(text.encode("gb18030")) == text


@pytest.mark.parametrize("text", [*JAPANESE, "".join(JAPANESE)])
@pytest.mark.parametrize("encoding", ["shift_jis", "euc_jp"])
def test_japanese_is_not_taken_for_chinese(text: str, encoding: str) -> None:
    with pytest.raises(BadDocument, match=r"save it in UTF-8|is not text in"):
        decoded(text.encode(encoding))


@pytest.mark.parametrize("text", [*KOREAN, "".join(KOREAN)])
def test_korean_is_not_taken_for_chinese(text: str) -> None:
    with pytest.raises(BadDocument, match="EUC-KR"):
        decoded(text.encode("euc_kr"))


@pytest.mark.parametrize(
    "data",
    [
        "Größe und Öl für müde Füße".encode("latin-1"),
        "Привет, как дела? Это русский текст".encode("cp1251"),
        "年假有八天，病假须提供证明。".encode()[:-1],
        "年假有八天，病假须提供证明。".encode("utf-16-le"),
    ],
)
def test_what_is_in_none_of_them_is_refused(data: bytes) -> None:
    with pytest.raises(BadDocument):
        decoded(data)


@pytest.mark.parametrize(
    ("page", "declared"),
    [
        (b'<meta charset="big5">', "big5"),
        (b"<META http-equiv=content-type content='text/html; charset=GB2312'>", "GB2312"),
        (b'<?xml version="1.0" encoding="Shift_JIS"?>', "Shift_JIS"),
        (b"<p>none</p>", ""),
    ],
)
def test_encoding_that_a_page_names_is_found(page: bytes, declared: str) -> None:
    assert declared_in_html(page) == declared


def test_named_encoding_counts_where_the_bytes_do_not_say_otherwise() -> None:
    assert decoded("Größe".encode("latin-1"), declared="iso-8859-1") == "Größe"
    assert decoded(JAPANESE[0].encode("shift_jis"), declared="Shift_JIS") == JAPANESE[0]
    assert decoded(SIMPLIFIED[0].encode("gbk"), declared="iso-8859-1") == SIMPLIFIED[0]
    assert decoded(SIMPLIFIED[0].encode("gbk"), declared="big5") == SIMPLIFIED[0]
    assert decoded(TRADITIONAL[0].encode("big5"), declared="no-such") == TRADITIONAL[0]


@pytest.mark.parametrize(
    "text", ["Grüße aus Köln", "It’s £5 – “cheap”", '"Auftraggeber/Empfänger";"Betrag"\n"Bäckerei Öz";"1,00 €"\n']
)
def test_western_words_and_signs_are_read_as_windows_writes_them(text: str) -> None:
    assert decoded(text.encode("cp1252")) == text
