"""Numbers of lists in the forms that Word and HTML have: 三, 贰, iv, c, ②."""

from collections.abc import Callable, Mapping

_ROMAN = {1000: "m", 900: "cm", 500: "d", 400: "cd", 100: "c", 90: "xc", 50: "l", 40: "xl", 10: "x"}
_ROMAN |= {9: "ix", 5: "v", 4: "iv", 1: "i"}
_SIMPLE, _LEGAL, _OLD_LEGAL = "零一二三四五六七八九", "零壹贰叁肆伍陆柒捌玖", "零壹貳參肆伍陸柒捌玖"
_MOST_CHINESE = 9_999
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def list_number(kind: str, number: int) -> str:
    """Return a number in the form of a kind of list (`numFmt` of Word); in digits if it has no such form."""
    write = _KINDS.get(kind)
    return (write(number) if write is not None and (number > 0 or kind == "none") else "") or (
        str(number) if kind != "none" else ""
    )


def _roman(number: int) -> str:
    written = ""
    for value, letters in _ROMAN.items():
        written += letters * (number // value)
        number %= value
    return written


def _letters(number: int) -> str:
    return _ALPHABET[(number - 1) % len(_ALPHABET)] * ((number - 1) // len(_ALPHABET) + 1)


def _counted(digits: str, units: str) -> Callable[[int], str]:
    def write(number: int) -> str:
        if number > _MOST_CHINESE:
            return ""
        written = ""
        for place, digit in enumerate(map(int, f"{number:04}")):
            unit = (units[2], units[1], units[0], "")[place]
            if digit:
                written += digits[digit] + unit
            elif written and not written.endswith("零"):
                written += "零"
        written = written.rstrip("零")
        return written.removeprefix("一") if written.startswith("一十") else written

    return write


def _digits(digits: str) -> Callable[[int], str]:
    return lambda number: "".join(digits[int(digit)] for digit in str(number))


def _from(first: str, most: int) -> Callable[[int], str]:
    """Return a function to signs that follow each other in Unicode."""
    return lambda number: chr(ord(first) + number - 1) if number <= most else ""


def _of(signs: str) -> Callable[[int], str]:
    return lambda number: signs[(number - 1) % len(signs)]


def _ordinal(number: int) -> str:
    usual = number % 10 if number % 100 not in {11, 12, 13} else 0
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(usual, 'th') }"


_COUNTING = _counted(_SIMPLE, "十百千")
_KINDS: Mapping[str, Callable[[int], str]] = {
    "none": lambda _: "",
    "decimalZero": lambda number: f"{number:02}",
    "lowerLetter": _letters,
    "upperLetter": lambda number: _letters(number).upper(),
    "lowerRoman": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
    "ordinal": _ordinal,
    "decimalFullWidth": _digits("０１２３４５６７８９"),
    "decimalEnclosedCircle": _from("①", 20),
    "decimalEnclosedCircleChinese": _from("①", 20),
    "decimalEnclosedParen": _from("⑴", 20),
    "decimalEnclosedFullstop": _from("⒈", 20),
    "ideographEnclosedCircle": _from("㊀", 10),
    **dict.fromkeys(("chineseCounting", "chineseCountingThousand", "japaneseCounting"), _COUNTING),
    **dict.fromkeys(("taiwaneseCounting", "taiwaneseCountingThousand"), _COUNTING),
    **dict.fromkeys(("ideographDigital", "taiwaneseDigital"), _digits("〇" + _SIMPLE[1:])),
    "chineseLegalSimplified": _counted(_LEGAL, "拾佰仟"),
    "ideographLegalTraditional": _counted(_OLD_LEGAL, "拾佰仟"),
    "ideographTraditional": _of("甲乙丙丁戊己庚辛壬癸"),
    "ideographZodiac": _of("子丑寅卯辰巳午未申酉戌亥"),
}
