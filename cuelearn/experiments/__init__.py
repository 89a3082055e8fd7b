"""The chapters' experiments: protocols that the notebooks call, each point of a sweep a function."""
