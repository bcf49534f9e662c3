"""Undo what an export changed for its target, as the metadata of the model say."""
