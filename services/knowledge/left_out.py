"""Words for the parts of a document that are not in its text."""

import re
from collections.abc import Mapping, Sequence
from zipfile import ZipFile


def parts_left_out(archive: ZipFile, parts: Mapping[str, tuple[str, bytes]]) -> list[str]:
    """Count the parts of an Office document that are not read.

    Args:
        archive: The document.
        parts: By their names, the files that hold such parts, and how each part begins; without a beginning, each
            file is one part.
    """
    told = []
    for name, (files, begins) in parts.items():
        members = [each for each in archive.namelist() if re.fullmatch(files, each)]
        found = sum(len(re.findall(begins, archive.read(each))) if begins else 1 for each in members)
        told += counted(found, name)
    return told


def counted(number: int, name: str) -> list[str]:
    """Return `3 comments`, or `3 comments (…)`; nothing for none."""
    noun, bracket, rest = name.partition(" (")
    return [f"{number:,} {noun}{'' if number == 1 else 's'}{bracket}{rest}"] if number else []


def ranges(numbers: Sequence[int]) -> str:
    """Return rising numbers with neighbours joined: `1, 3–5`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
