"""Test support that needs no product code: oracles, model builders and hypothesis strategies."""
