"""`python -m services.knowledge.conversion_process KIND`: convert what comes in, under limits of its own.

A hostile PDF can make any parser loop, crash or fill the memory. Here that ends a process that has nothing to
lose: it knows no secret, and ends with its limits even where the service that started it is gone.
"""

import json
import resource
import sys
from dataclasses import asdict
from typing import Any, cast, get_args

from services.knowledge.document import BadDocument
from services.knowledge.formats import convert
from services.knowledge.media_types import Kind

_CPU_S = 60
_MEMORY_BYTES = 1536 * 1024 * 1024


def main() -> None:
    """Read a document from the standard input; write its text, or what is wrong with it, as JSON."""
    _limit(resource.RLIMIT_CPU, _CPU_S)
    _limit(resource.RLIMIT_AS, _MEMORY_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    (kind,) = (each for each in get_args(Kind) if each == sys.argv[1])
    answer: dict[str, Any]
    try:
        answer = asdict(convert(cast("Kind", kind), sys.stdin.buffer.read()))
    except BadDocument as error:
        answer = {"reason": error.message}
    except MemoryError:
        answer = {"reason": "needs too much memory to be read"}
    sys.stdout.write(json.dumps(answer))


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    if hard == resource.RLIM_INFINITY or most <= hard:
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    main()
