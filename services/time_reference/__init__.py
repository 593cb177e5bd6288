"""Time as people write it: zones now, references to past days later."""
