"""The steps of a move, in their order."""

from typing import Literal, get_args

Step = Literal["draining", "closed", "copied", "verified", "switched", "done"]
"""How far a move is: turns end; the source is closed; rows and index are in the target; both were compared; the
directory names the target; the target is open. Until `done`, requests of the tenant get 503."""

STEPS: tuple[Step, ...] = get_args(Step)
