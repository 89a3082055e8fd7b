"""The papers' methods: stochastic visits of samples.

In reading order: `om2` (thesis Algorithm 4), `obscure` (5 and 6, Pegasos-MKL), `ufo` (7), `regression`. They
share `training`: a state, the loops over visits and over epochs.
"""
