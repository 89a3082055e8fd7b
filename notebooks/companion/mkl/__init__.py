"""Experiments of the MKL chapter (thesis chapter 4, JMLR 2012 section 5)."""
