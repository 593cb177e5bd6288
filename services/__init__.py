"""Services that nodes and the API use: stores, memory, the prompt, models, jobs."""

import os

# Before numpy is imported. Its library for linear algebra starts a thread for each core. After every product of
# matrices these threads spin for some milliseconds: half of a recall's CPU, taken from other turns.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
