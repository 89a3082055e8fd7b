"""The mathematics that all chapters share: losses, group norms, checks, a linear SVM, saving."""
