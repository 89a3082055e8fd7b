"""Experiments of the MKTL chapter (thesis chapter 6)."""
