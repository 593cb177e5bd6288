"""Counts tokens without the models' tokenizer tables, which would have to be downloaded."""

import re

_CJK = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+")

TOKENS_PER_CJK = 0.75
TOKENS_PER_OTHER = 0.25
MESSAGE_OVERHEAD = 4
"""Tokens for a message's role and delimiters."""
IMAGE_TOKENS = 765
"""A 1024 by 1024 image at high detail, as OpenAI counts it."""


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text, with separate rates for Chinese and other scripts.

    Vocabularies of some 200,000 entries hold most common two-character Chinese words, hence less than a
    token a character; English runs at about four characters a token.
    """
    if text.isascii():
        return round(len(text) * TOKENS_PER_OTHER) + 1 if text else 0
    other = len(_CJK.sub("", text))  # a list of the characters would take a hundred times the text's memory
    return round((len(text) - other) * TOKENS_PER_CJK + other * TOKENS_PER_OTHER) + 1
