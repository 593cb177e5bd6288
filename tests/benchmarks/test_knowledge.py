"""What knowledge bases are measured with fits together."""

from benchmarks.knowledge import DATA, bases, pages, questions
from services.knowledge.chunking import chunks_of, sections
from services.knowledge.document import Converted, Part


def test_every_question_has_its_answer_in_a_document() -> None:
    assert sum(len(questions(base.prefix)) for base in bases()) >= 80
    for base in bases():
        texts = {file.name: file.read_text() for file in (DATA / base.prefix / "documents").iterdir()}
        headings = {
            (name, above[-1])
            for name, text in texts.items()
            if name.endswith(".md")
            for above, _ in sections(text)
        }
        asked = questions(base.prefix)
        assert len({one["question"] for one in asked}) == len(asked)
        for one in asked:
            if one["document"].endswith(".md"):
                assert (one["document"], one["heading"]) in headings
            else:
                assert f"<h2>{one['heading']}</h2>" in texts[one["document"]]


def test_bases_tell_routing_enough() -> None:
    for base in bases():
        assert base.description
        assert len(base.keywords) >= 8
        assert 5 <= len(base.questions) <= 8


def test_generated_pages_are_the_same_every_time_and_of_several_chunks() -> None:
    made = list(pages(4))
    assert made == list(pages(4))
    for _, data in made:
        chunks = chunks_of(Converted("", (Part(data.decode()),), headings=True))
        assert len(chunks) >= 4
