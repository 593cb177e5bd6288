"""What flows through a turn: plain values, and nothing of ours imported."""
