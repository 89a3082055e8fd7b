"""In place of a package that jsonschema imports if it is there, and that nothing here uses.

Its grammar of international addresses takes more than a second of every process that reads a notebook.
"""

raise ImportError("spared: see tests/conftest.py")
