"""The version, apart from the public names: the wings may read it."""

VERSION = "0.1.0"
