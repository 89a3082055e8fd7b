"""What the thesis prints: tables 5.1 to 5.4. The numbers of figures 5.3 and 5.6 are not printed."""

import pandas as pd

_TABLES = {
    "5.1": [("RANDOM", 73.1, 0.0), ("CLSVM", 86.3, 0.1), ("MIMLSVM", 89.62, 0.2), ("MMS", 91.86, 0.3)],
    "5.2": [
        ("RANDOM", 66.0, 0.0),
        ("1vA-SVM", 81.6, 0.6),
        ("MC-SVM", 87.2, 0.3),
        ("MC-SVM half", 83.3, 0.2),
        ("CLSVM", 76.9, 0.2),
        ("MIMLSVM", 74.7, 0.9),
        ("MMS", 85.7, 0.5),
    ],
    "5.3": [
        ("RANDOM", 37.0, 0.0),
        ("MMS", 85.3, 0.7),
        ("RANDOM positions", 70.8, 0.0),
        ("MMS positions", 89.1, 0.7),
    ],
    "5.4": [
        ("RANDOM", 39.5, 0.0),
        ("1vA-SVM", 82.2, 0.2),
        ("MC-SVM", 87.3, 0.1),
        ("MMS", 83.5, 0.4),
        ("MMS positions", 84.9, 0.5),
    ],
}

#: Appendix A on the two news corpora.
CORPORA = {
    "Labeled Yahoo! News": {
        "items": 20_071,
        "faces": 31_147,
        "items with a spatial indicator": 3105,
        "most faces in an image": 15,
        "most names in a caption": 9,
        "names that occur 20 times": 214,
        "names that occur 3 times": 460,
    },
    "Faces+Poses": {"items": 1703, "training items": 1600, "test items": 103},
}


def printed(number):
    """One of the thesis's tables.

    Parameters
    ----------
    number : {"5.1", "5.2", "5.3", "5.4"}

    Returns
    -------
    DataFrame
        Columns method, accuracy, sd; in percent.
    """
    return pd.DataFrame(_TABLES[number], columns=["method", "accuracy", "sd"])
