"""Finds keys, tokens, card numbers and identity numbers in texts; memory does not keep them. Pure functions.

The format decides, and check digits if there are any. No word marks a secret, except the name that a value is
assigned to. Formats of vendors come from detect-secrets; the others are here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

_WORTH_A_LOOK = re.compile(r"\d|-----BEGIN |://")
_MARKS = ("-----begin ", "://", "xox")
_LONG = re.compile(r"[\w./+~=-]{16}|\d(?:(?:[ -]?\d){12}|\d\d-\d\d-\d{4})", re.ASCII)
"""Every secret matches this: it is marked, or is a long word or number. Most texts do not match."""

_OWN: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.ASCII))
    for kind, pattern in (
        (
            "private key",
            r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S])*"
            r"(?:-----[A-Z0-9 ]{3,40}-----)?",
        ),
        ("token", r"(?<![\w.-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
        ("token", r"(?<![\w-])(?:github_pat_\w{30}|npm_\w{34}|hf_[A-Za-z]{30}|ya29\.[\w-]{20})[\w-]*"),
        ("token", r"\bBearer\s{1,3}(?=[\w.~+/-]{0,300}\d)[\w.~+/-]{20,}=*"),
        ("key", r"(?<![\w-])(?:sk|rk|pk)-(?=[\w-]{0,300}\d)[\w-]{20,}"),
        ("key", r"\b(?:AIza[\w-]{35}|LTAI[A-Za-z0-9]{12,26}|AKID[A-Za-z0-9]{32}|gsk_\w{40,}|xai-\w{40,})"),
        (
            "key",
            r"(?i:(?<![a-z])(?:(?:api|access|secret|private|auth|client|session|account)[ _-]?)?"
            r"(?:key|token|secret)"
            r"|密钥|令牌|秘钥)[\"'”]?\s{0,3}(?:=|:|：|is|是|为)\s{0,3}[\"'“]?"
            r"((?=[\w./+~-]{0,300}\d)(?=[\w./+~-]{0,300}[A-Za-z])[\w./+~-]{16,300}=*)",
        ),
        ("key", r"://[^\s:/@]{1,80}:([^\s/@]{1,200})@"),
    )
)
_NUMBERS = re.compile(r"(?<![\w.,+-])\d(?:[ -]?\d){12,18}(?![\w-]|[.,]\d)", re.ASCII)
"""Thirteen to nineteen digits, together or in groups."""
_GROUPS = re.compile(r"\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,4}(?:\1\d{1,3})?|\d{4}([ -])\d{6}\2\d{4,5}")
_ISSUER = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|35\d{14}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|62\d{14,17}"
)
_RESIDENT = re.compile(
    r"(?<!\w)[1-9]\d{5}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?!\w)", re.ASCII
)
_RESIDENT_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_SOCIAL_SECURITY = re.compile(r"(?<![\w.-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-]|\.\d)", re.ASCII)


@dataclass(frozen=True)
class _Found:
    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Secrets:
    """Leaves secrets out of texts that memory keeps; if `are_kept`, texts stay as they are."""

    are_kept: bool = False

    def without(self, text: str) -> str:
        """Return a text in which each secret is replaced by its kind: `[card number left out]`."""
        return text if self.are_kept else without_secrets(text)

    def without_in(self, value: Any) -> Any:
        """Return a JSON value with secrets left out of all its texts."""
        if isinstance(value, str):
            return self.without(value)
        if isinstance(value, Mapping):
            return {key: self.without_in(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.without_in(inner) for inner in value]
        return value


def without_secrets(text: str) -> str:
    """Return a text in which each secret is replaced by its kind."""
    if not _WORTH_A_LOOK.search(text):
        return text
    if not any(map(text.lower().__contains__, _MARKS)) and not _LONG.search(text):
        return text
    kept, end = [], 0
    for found in sorted(_secrets(text), key=lambda each: (each.start, -each.end)):
        if found.end <= end:
            continue
        if found.start >= end:
            kept += [text[end : found.start], f"[{found.kind} left out]"]
        end = found.end
    return "".join([*kept, text[end:]])


def _secrets(text: str) -> Iterator[_Found]:
    for kind, pattern in (*_OWN, *_of_vendors()):
        for match in pattern.finditer(text):
            own = kind != "vendor" and pattern.groups
            yield _Found(*match.span(1 if own else 0), "key" if kind == "vendor" else kind)
    for match in _NUMBERS.finditer(text):
        if _is_card(match[0]):
            yield _Found(*match.span(), "card number")
    for match in _RESIDENT.finditer(text):
        if _is_resident(match[0]):
            yield _Found(*match.span(), "identity number")
    for match in _SOCIAL_SECURITY.finditer(text):
        yield _Found(*match.span(), "identity number")


def _is_card(text: str) -> bool:
    """Return whether digits are grouped as on a card, with an issuer's prefix and length and a valid Luhn
    digit."""
    digits = [int(each) for each in text if each.isdigit()]
    if not _GROUPS.fullmatch(text) or not _ISSUER.fullmatch("".join(map(str, digits))):
        return False
    doubled = [sum(divmod(2 * each, 10)) for each in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_resident(text: str) -> bool:
    """Return whether an identity number of mainland China has a valid check digit (GB 11643)."""
    total = sum(int(digit) * weight for digit, weight in zip(text, _RESIDENT_WEIGHTS, strict=False))
    return text[-1].upper() == "10X98765432"[total % 11]


@cache
def _of_vendors() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return those formats of detect-secrets that have a fixed length: they search any text quickly."""
    # Imported late because it takes a tenth of a second, and most processes meet no secret.
    from detect_secrets.plugins import (  # noqa: PLC0415
        aws,
        azure_storage_key,
        discord,
        github_token,
        gitlab_token,
        mailchimp,
        pypi_token,
        sendgrid,
        slack,
        square_oauth,
        stripe,
        telegram_token,
        twilio,
    )

    detectors = (
        aws.AWSKeyDetector,
        azure_storage_key.AzureStorageKeyDetector,
        discord.DiscordBotTokenDetector,
        github_token.GitHubTokenDetector,
        gitlab_token.GitLabTokenDetector,
        mailchimp.MailchimpDetector,
        pypi_token.PypiTokenDetector,
        sendgrid.SendGridDetector,
        slack.SlackDetector,
        square_oauth.SquareOAuthDetector,
        stripe.StripeDetector,
        telegram_token.TelegramBotTokenDetector,
        twilio.TwilioKeyDetector,
    )
    return tuple(("vendor", pattern) for detector in detectors for pattern in detector.denylist)
