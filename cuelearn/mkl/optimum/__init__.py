"""The problem of the papers and its certified optimum.

In reading order: `problem` (primal, dual, bound), `dual` (ascent for the multiclass hinge), `losses` (others,
and ascent for them), `reference` (an optimum by ascent alone, any model in this problem).
"""
