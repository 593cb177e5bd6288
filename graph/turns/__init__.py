"""How a turn is run, followed, stopped and recovered."""
