"""From float operators between quantizers to operators on codes."""
