"""The language: typed quantized graphs. Knows no file format."""
