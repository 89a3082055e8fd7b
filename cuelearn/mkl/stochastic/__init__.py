"""The papers' methods: stochastic visits of samples, one file per algorithm.

In reading order: `om2` (thesis Algorithm 4), `obscure` (5 and 6), `ufo` (7), `pegasos`, `regression`. They
share a state (`state`), the loop over visits (`stream`) and over epochs (`training`).
"""
