"""The flow of a turn: the graph, its edges, and the runner that drives one turn through it."""
