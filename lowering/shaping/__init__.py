"""Passes that shape a graph for a runtime: each keeps every value, bit for bit.

A pass takes a graph and returns (graph, modified). docs/adr/0005 says why they work on the IR.
"""
