"""How well memory remembers, measured on a set of conversations and questions."""
