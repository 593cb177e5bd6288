"""Whole numbers as they are written in Chinese and in English."""

CHINESE_DIGITS = {
    **{digit: value for value, digit in enumerate("零一二三四五六七八九")},
    **{"〇": 0, "○": 0, "两": 2, "俩": 2},
}
_CHINESE_POWERS = {"十": 10, "百": 100, "千": 1000}
_TEN = 10
_CHINESE_TENS = {"廿": 20, "卅": 30}
CHINESE_NUMERAL = rf"[\d{''.join(CHINESE_DIGITS)}{''.join(_CHINESE_POWERS)}{''.join(_CHINESE_TENS)}]"
"""Character class of Chinese and Arabic digits, for regular expressions."""


def chinese_number(text: str) -> int:
    """Return the number that is written (12, 十二, 廿三, 两千零四, 三千二, 二〇二三); -1 if it is none (七八)."""
    if text.isdecimal():
        return int(text)
    if text and all(char in CHINESE_DIGITS or char.isdecimal() for char in text):
        digits = "".join(str(CHINESE_DIGITS.get(char, char)) for char in text)
        # Two digits side by side are a year (九七) or an approximation (七八天).
        return int(digits) if len(digits) in {1, 4} else -1
    total, digit, smallest = 0, None, 10_000
    for char in text:
        if char in CHINESE_DIGITS or char.isdecimal():
            if digit:
                return -1
            digit = CHINESE_DIGITS.get(char, int(char) if char.isdecimal() else 0)
        elif char in _CHINESE_TENS and smallest > _TEN:
            total, digit, smallest = total + _CHINESE_TENS[char], None, 10
        elif char in _CHINESE_POWERS and _CHINESE_POWERS[char] < smallest:
            smallest = _CHINESE_POWERS[char]
            total, digit = total + (1 if digit is None else digit) * smallest, None
        else:
            return -1
    if digit and smallest > _TEN and text[-2:-1] in _CHINESE_POWERS:  # 三千二 is 3200, and 三千零二 is 3002
        return total + digit * smallest // 10
    return total + (digit or 0) if text else -1


_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
ENGLISH_ONES = {word: value for value, word in enumerate(_ONES)}
ENGLISH_TENS = {
    word: 10 * value
    for value, word in enumerate(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), 2)
}
ENGLISH_ORDINALS = {
    **{word + "th": value for word, value in ENGLISH_ONES.items() if value},
    **{word.removesuffix("y") + "ieth": value for word, value in ENGLISH_TENS.items()},
    **{"first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12},
}
