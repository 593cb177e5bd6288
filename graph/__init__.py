"""How a turn flows: the graph, its edges, and the runner that drives one turn through it."""
