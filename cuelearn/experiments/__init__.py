"""The chapters' experiments: protocols that the notebooks call. A function here is one point of a sweep, or a list of points."""
