"""Striking quotes out: one file an operator; `forget` is the door and holds the policy."""
