"""Services that nodes and the API call: stores, memory, the prompt, models, jobs."""

import os

# Before numpy is imported. Its library of linear algebra starts a thread for each core, and after every product of
# matrices these spin for some milliseconds: half of a recall's CPU, taken from other turns.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
