"""Reads texts for memory: whose words they are, what they order, and what stays of them."""
