"""The nodes of the graph: each reads the state, calls a service or two, and returns what changed."""
