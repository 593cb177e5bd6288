"""`python -m services.knowledge.conversion_process KIND MEGABYTES SECONDS`: converts its input within limits.

A hostile PDF can make any parser loop, crash or fill the memory. Here that only ends a process that knows no
secret, and whose limits end it even if the service is gone.
"""

import json
import resource
import sys
from dataclasses import asdict
from typing import Any, cast, get_args

from services.knowledge.document import BadDocument
from services.knowledge.encodings import Kind
from services.knowledge.formats import convert


def main() -> None:
    """Read a document from standard input; write its text, or the error, as JSON."""
    megabytes, seconds = map(int, sys.argv[2:])
    _limit(resource.RLIMIT_CPU, seconds)
    _limit(resource.RLIMIT_AS, megabytes * 1024 * 1024)
    _limit(resource.RLIMIT_CORE, 0)
    (kind,) = (each for each in get_args(Kind) if each == sys.argv[1])
    answer: dict[str, Any]
    try:
        answer = asdict(convert(cast("Kind", kind), sys.stdin.buffer.read()))
    except BadDocument as error:
        answer = {"reason": error.message}
    except MemoryError:
        answer = {"reason": "needs too much memory to be read"}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode())


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    if hard == resource.RLIM_INFINITY or most <= hard:
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    main()
