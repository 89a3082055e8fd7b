"""Experiments of the OKS chapter (Yang, Mahdavi, Jin, Yi, Hoi, AAAI 2012)."""
