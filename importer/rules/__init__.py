"""Import rules, one operator family a file; a new file is found by its being here."""

from intonnx.ir.discover import loader

load_all = loader(__name__, __path__)
