"""Shared mathematics of all chapters: formulas, checks, the base of estimators, a linear SVM, saving."""
