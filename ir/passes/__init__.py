"""Rewrites of a graph that keep every value."""
