"""Find docstrings that a reader must read twice: `python .ci/docstrings.py FOLDER …`.

It reports those that begin with a relative word and not with the thing that they describe, those that give a
meaning to None where the annotation has none, and those that name another unit than the name does.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_BEGINS = re.compile(
    r"(?:(?:By|For|From|In|On|To|With|At) (?:which|what|whom|whose)|Of|That|Which|What|Whose|Whom|The same)\b"
)
_UNITS = {"s": "seconds", "ms": "milliseconds", "bytes": "bytes", "characters": "characters", "tokens": "tokens"}
_NAMED = re.compile(
    r"^(seconds|milliseconds|minutes|bytes|kilobytes|megabytes|characters|tokens)\b", re.IGNORECASE
)


def main(folders: list[str]) -> int:
    """Print what is found, a line each; return 1 if there is any."""
    found = 0
    for path in sorted(path for folder in folders for path in Path(folder).rglob("*.py")):
        for line, why in _faults(ast.parse(path.read_text("utf-8"))):
            sys.stdout.write(f"{path}:{line}: {why}\n")
            found += 1
    return int(found > 0)


def _faults(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        statements = getattr(node, "body", None)
        if not isinstance(statements, list):
            continue
        for place, statement in enumerate(statements):
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    before = statements[place - 1] if place else None
                    yield from ((statement.lineno, why) for why in _faults_of(text.strip(), before))


def _faults_of(text: str, described: ast.stmt | None) -> Iterator[str]:
    if begin := _BEGINS.match(text):
        yield f"the docstring begins with {begin[0]!r}, not with the thing that it describes"
    if isinstance(described, ast.AnnAssign):
        annotation = ast.unparse(described.annotation)
        if re.search(r"\bNone = ", text) and not re.search(r"None|Any|Optional|Id$", annotation):
            yield f"the docstring gives None a meaning, and the annotation is {annotation}"
    if isinstance(described, ast.Assign | ast.AnnAssign):
        target = described.target if isinstance(described, ast.AnnAssign) else described.targets[0]
        name = ast.unparse(target).lower()
        unit = _UNITS.get(name.rpartition("_")[2]) if "_per_" not in name else None
        if unit and (named := _NAMED.match(text)) and named[0].lower() != unit:
            yield f"the docstring counts {named[0].lower()}, and the name {unit}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
