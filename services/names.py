"""Ids that callers give to their users and conversations."""

_MOST_CHARACTERS = 128
_UNFILLED = ("{{", "${")
RULE = (
    "must be 1 to 128 printable characters, without a blank at either end, neither . nor .., and no placeholder "
    "that was left as it is, such as {{USER_ID}}"
)


def is_id(text: str) -> bool:
    """Whether callers may use the text as an id.

    Identity providers and mail addresses hold `|`, `+`, `/` and letters of any script. A segment `.` or `..` of a
    path would be resolved by every HTTP client; a placeholder would be one user for everybody.
    """
    return (
        0 < len(text) <= _MOST_CHARACTERS
        and text.isprintable()
        and text.strip() == text
        and text not in {".", ".."}
        and not any(mark in text for mark in _UNFILLED)
    )
