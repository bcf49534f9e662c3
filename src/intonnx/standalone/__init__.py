"""A compiled model as one file that needs Python and numpy alone: `bundle` writes it."""
