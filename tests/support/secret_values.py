"""Made-up secrets of every kind that memory does not keep, with sentences around them."""

import base64
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass

_LETTERS = string.ascii_letters + string.digits
_LOWER = string.ascii_lowercase + string.digits
_UPPER = string.ascii_uppercase + string.digits
_HEX = "0123456789abcdef"


@dataclass(frozen=True)
class Planted:
    """A secret, and a sentence that holds it."""

    secret: str
    sentence: str


def planted(count: int, seed: int = 20261126) -> list[Planted]:
    """Return secrets of all kinds in turn, half of them in Chinese sentences."""
    chance = random.Random(seed)
    makers = list(_MAKERS)
    made = []
    for number in range(count):
        secret = makers[number % len(makers)](chance)
        form = chance.choice(_SENTENCES)
        made.append(Planted(secret, form.format(secret)))
    return made


def card(chance: random.Random) -> str:
    """A card number with a right check digit, together or in groups of four."""
    issuer, length = chance.choice([("4", 16), ("51", 16), ("2221", 16), ("6222", 19), ("6228", 16), ("37", 15)])
    digits = issuer + "".join(chance.choice("0123456789") for _ in range(length - len(issuer) - 1))
    total = sum(int(each) for each in digits[-2::-2])
    total += sum(sum(divmod(2 * int(each), 10)) for each in digits[::-2])
    digits += str(-total % 10)
    if length == 15:
        return f"{digits[:4]} {digits[4:10]} {digits[10:]}" if chance.random() < 0.5 else digits
    separator = chance.choice(["", " ", "-"])
    return separator.join(digits[at : at + 4] for at in range(0, length, 4))


def resident_identity(chance: random.Random) -> str:
    """An identity number of mainland China with a right check digit."""
    place = chance.choice(["110105", "310115", "440106", "510104", "330106"])
    day = f"{chance.randint(1940, 2015)}{chance.randint(1, 12):02}{chance.randint(1, 28):02}"
    digits = f"{place}{day}{chance.randint(0, 999):03}"
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return digits + "10X98765432"[sum(int(a) * b for a, b in zip(digits, weights, strict=True)) % 11]


def _some(chance: random.Random, alphabet: str, count: int) -> str:
    """Random characters, with a digit and a letter among them."""
    return "7a" + "".join(chance.choice(alphabet) for _ in range(count - 2))


def _json_web_token(chance: random.Random) -> str:
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": _some(chance, _LETTERS, 12), "iat": 1_790_000_000}]
    coded = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts]
    return ".".join([*coded, _some(chance, _LETTERS, 43)])


def _private_key(chance: random.Random) -> str:
    kind = chance.choice(["", "RSA ", "EC ", "OPENSSH "])
    lines = "\n".join(_some(chance, _LETTERS + "+/", 64) for _ in range(4))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


def _social_security(chance: random.Random) -> str:
    return f"{chance.randint(1, 665):03}-{chance.randint(1, 99):02}-{chance.randint(1, 9999):04}"


_MAKERS: tuple[Callable[[random.Random], str], ...] = (
    card,
    resident_identity,
    _social_security,
    _json_web_token,
    _private_key,
    lambda chance: "AKIA" + "".join(chance.choice(_UPPER) for _ in range(15)) + "7",
    lambda chance: "ghp_" + _some(chance, _LETTERS, 36),
    lambda chance: "github_pat_" + _some(chance, _LETTERS, 60),
    lambda chance: "glpat-" + _some(chance, _LETTERS, 20),
    lambda chance: "sk-" + _some(chance, _LETTERS, 48),
    lambda chance: "sk-proj-" + _some(chance, _LETTERS, 60),
    lambda chance: "sk-ant-api03-" + _some(chance, _LETTERS, 70),
    lambda chance: "AIza" + _some(chance, _LETTERS, 35),
    lambda chance: "LTAI" + _some(chance, _LETTERS, 20),
    lambda chance: "AKID" + _some(chance, _LETTERS, 32),
    lambda chance: f"xoxb-{chance.randint(10**9, 10**10)}-{_some(chance, _LOWER, 24)}",
    lambda chance: "sk_live_" + _some(chance, _LETTERS, 24),
    lambda chance: f"SG.{_some(chance, _LETTERS, 22)}.{_some(chance, _LETTERS, 43)}",
    lambda chance: f"{chance.randint(10**8, 10**9)}:{_some(chance, _LETTERS, 35)}",
    lambda chance: "AC" + _some(chance, _HEX, 32),
    lambda chance: "npm_" + _some(chance, _LETTERS, 36),
    lambda chance: "hf_" + "".join(chance.choice(string.ascii_letters) for _ in range(32)) + "7a",
)  # fmt: skip
_SENTENCES = (
    "Remember that the one for the server is {} and nothing else.",
    "my new one is {}",
    "Could you check {}? It stopped working.",
    "记住，我的是{}，别弄丢了。",
    "我的号码：{}",
    "帮我看看这个 {} 为什么不能用",
)
