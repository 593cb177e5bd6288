"""Text boxes of a Word document."""

import zipfile
from io import BytesIO

import pytest

from services.knowledge.conversion import Converter
from tests.services.knowledge.test_conversion import LIMITS
from tests.support.knowledge import word

pytestmark = pytest.mark.anyio

_NAMES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)


def _run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def _document(body: str) -> bytes:
    data = BytesIO(word((0, "x")))
    made = BytesIO()
    with zipfile.ZipFile(data) as archive, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as copied:
        for member in archive.infolist():
            content = archive.read(member)
            if member.filename == "word/document.xml":
                content = f"<w:document {_NAMES}><w:body>{body}</w:body></w:document>".encode()
            copied.writestr(member.filename, content)
    return made.getvalue()


_BOX = f"<w:txbxContent><w:p>{_run('In the box.')}</w:p></w:txbxContent>"
_DRAWING = f"<w:drawing><wps:wsp><wps:txbx>{_BOX}</wps:txbx></wps:wsp></w:drawing>"
_FALLBACK = f"<w:pict><v:shape><v:textbox>{_BOX}</v:textbox></v:shape></w:pict>"

CASES = {
    "box with its fallback": (
        f"<w:p>{_run('Before.')}<w:r><mc:AlternateContent><mc:Choice Requires='wps'>{_DRAWING}</mc:Choice>"
        f"<mc:Fallback>{_FALLBACK}</mc:Fallback></mc:AlternateContent></w:r></w:p><w:p>{_run('After.')}</w:p>",
        "Before.\n\nIn the box.\n\nAfter.",
    ),
    "old box": (f"<w:p>{_run('Before.')}<w:r>{_FALLBACK}</w:r></w:p>", "Before."),
}


@pytest.mark.parametrize("name", CASES)
async def test_it_is_read_in_its_place_and_once(name: str) -> None:
    body, text = CASES[name]
    converted = await Converter(LIMITS).convert("docx", _document(body))
    read = converted.parts[0].text.strip()
    assert read.startswith(text)
    assert read.count("In the box.") == body.count(_DRAWING) or name == "old box"
