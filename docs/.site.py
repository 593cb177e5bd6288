"""What the site leaves out of the pages: screenshots, so that it fits into the wheel."""

import re

_SCREENSHOT = re.compile(r"^!\[[^\]]*\]\([^)]*\.png\)\n+", re.MULTILINE)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the page without lines that are a screenshot."""
    return _SCREENSHOT.sub("", markdown)
