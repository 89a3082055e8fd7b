"""The problem of the papers and its certified optimum.

In reading order: `problem` (primal, dual, bound), `dual` with `crammer_singer` (ascent for the multiclass
hinge), `losses` with `convex` (ascent for other losses), `reference` (an optimum by ascent alone), `compare`
(any model in this problem).
"""
