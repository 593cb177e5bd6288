"""What of a Word document would be lost: formulas, ruby text, text boxes."""

import zipfile
from io import BytesIO

import pytest

from services.knowledge.conversion import Converter
from tests.services.knowledge.test_conversion import LIMITS
from tests.support.knowledge import word

_NAMES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)


def _run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def _math(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


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
    "formula": (
        f"<w:p>{_run('For ')}<m:oMath>{_math('a')}"
        f"<m:f><m:num>{_math('b + c')}</m:num><m:den>{_math('2')}</m:den></m:f>"
        f"<m:sSup><m:e>{_math('x')}</m:e><m:sup>{_math('2')}</m:sup></m:sSup></m:oMath>{_run(', done.')}</w:p>",
        "For a(b + c)/2x^2, done.",
    ),
    "formula of its own paragraph": (
        f"<w:p><m:oMathPara><m:oMath><m:rad><m:deg/><m:e>{_math('x')}</m:e></m:rad></m:oMath></m:oMathPara></w:p>",
        "√(x)",
    ),
    "ruby": (
        "<w:p><w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>chāi</w:t></w:r></w:rt>"
        f"<w:rubyBase>{_run('差')}</w:rubyBase></w:ruby></w:r>{_run('旅费')}</w:p>",
        "差旅费",
    ),
    "box with its fallback": (
        f"<w:p>{_run('Before.')}<w:r><mc:AlternateContent><mc:Choice Requires='wps'>{_DRAWING}</mc:Choice>"
        f"<mc:Fallback>{_FALLBACK}</mc:Fallback></mc:AlternateContent></w:r></w:p><w:p>{_run('After.')}</w:p>",
        "Before.\n\nIn the box.\n\nAfter.",
    ),
    "box without one": (
        f"<w:p>{_run('Before.')}<w:r><mc:AlternateContent><mc:Choice Requires='wps'>{_DRAWING}</mc:Choice>"
        f"</mc:AlternateContent></w:r></w:p><w:p>{_run('After.')}</w:p>",
        "Before.\n\nIn the box.\n\nAfter.",
    ),
    "drawing alone": (f"<w:p>{_run('Before.')}<w:r>{_DRAWING}</w:r></w:p>", "Before.\n\nIn the box."),
    "old box": (f"<w:p>{_run('Before.')}<w:r>{_FALLBACK}</w:r></w:p>", "Before."),
}


@pytest.mark.parametrize("name", CASES)
async def test_it_is_read_in_its_place_and_once(name: str) -> None:
    body, text = CASES[name]
    converted = await Converter(LIMITS).convert("docx", _document(body))
    read = converted.parts[0].text.strip()
    assert read.startswith(text)
    assert read.count("In the box.") == body.count(_DRAWING) or name == "old box"
