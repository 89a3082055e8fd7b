"""The paper's tables 1 and 2, beside which ours are printed. Times in seconds, as printed in hours or seconds."""

import pandas as pd

_ORDER = ("MuTron", "OM1", "OM2", "AlignmentSVM", "MuSVM", "SimpleMKL", "SOM", "OKS")
_TABLES = {
    1: {
        "animal vs vehicle": (
            (25920, 16920, 9000, 2016, 4680, 190800, 180, 118.8),
            (0.8502, 0.8360, 0.8279, 0.8812, 0.8818, 0.8806, 0.7603, 0.8675),
            ("11", "13", "", "11", "15", "34", "1,6,14,20,48", "10,10,11,11,13"),
            (0.0732, 0.0155),
        ),
        "animal vs person": (
            (19800, 12960, 8640, 1620, 3240, 129600, 144, 108),
            (0.8193, 0.7783, 0.8402, 0.8285, 0.8285, 0.7435, 0.7628, 0.8251),
            ("15", "11", "", "11", "11", "10", "1,13,25,36,50", "10,11,13,14,16"),
            (0.0553, 0.0083),
        ),
        "person vs vehicle": (
            (14760, 9720, 5040, 1548, 2880, 111600, 90, 64.8),
            (0.8773, 0.7646, 0.8562, 0.9049, 0.9064, 0.8662, 0.8678, 0.8954),
            ("16", "15", "", "11", "15", "14", "9,9,9,29,51", "9,11,13,16,33"),
            (0.0332, 0.0098),
        ),
    },
    2: {
        "sky vs people": (
            (1621, 997, 767, 924, 1187, 19493, 32, 27),
            (0.7126, 0.8563, 0.8683, 0.8563, 0.8922, 0.8503, 0.7856, 0.8874),
            ("10", "16", "", "43", "59", "14", "1,7,18,37,54", "9,10,11,16,39"),
            (0.0292, 0.0155),
        ),
        "water vs tree": (
            (2506, 1470, 915, 785, 1458, 25124, 41, 36),
            (0.7351, 0.7405, 0.7676, 0.7784, 0.8108, 0.8324, 0.7589, 0.7892),
            ("15", "15", "", "11", "16", "14", "6,12,41,44,52", "9,11,13,15,16"),
            (0.0293, 0.0220),
        ),
        "sky vs grass": (
            (817, 572, 447, 493, 725, 10808, 20, 20),
            (0.8200, 0.6933, 0.8667, 0.9067, 0.8867, 0.8800, 0.8093, 0.8920),
            ("13", "11", "", "11", "10", "14", "7,28,28,38,43", "11,12,13,15,16"),
            (0.0678, 0.0098),
        ),
    },
}


def printed(number):
    """Rows of the paper's table 1 or 2.

    Returns
    -------
    DataFrame
        Columns task, method, seconds, accuracy, sd (SOM-SVM and OKS-SVM over five seeds), kernels.
    """
    rows = []
    for task, (seconds, accuracy, kernels, sd) in _TABLES[number].items():
        spread = dict(zip(("SOM", "OKS"), sd, strict=True))
        rows += [
            {"task": task, "method": m, "seconds": s, "accuracy": a, "sd": spread.get(m), "kernels": k}
            for m, s, a, k in zip(_ORDER, seconds, accuracy, kernels, strict=True)
        ]
    return pd.DataFrame(rows)
