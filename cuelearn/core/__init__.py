"""Shared mathematics of all chapters: losses, group norms, checks, a linear SVM, saving."""
