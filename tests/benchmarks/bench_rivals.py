"""The batch rivals against OBSCURE on the same kernels: seconds and ratios of one run, warmed up, one thread.

python tests/benchmarks/bench_rivals.py [--quick]
"""

import argparse

import pandas as pd
from threadpoolctl import threadpool_limits

from companion import mkl as exp

# parameters fixed beforehand; the notebook chooses them by cross-validation
PARAMS = {
    "OBSCURE": {"C": 10.0, "p": 1.25},
    "UFOMKL": {"C": 10.0, "alpha": 0.001},
    "SILPMKL": {"C": 10.0},
    "SimpleMKL": {"C": 10.0},
    "LpMKL": {"C": 10.0, "p": 1.25},
    "MCMKL": {"C": 10.0},
    "LPBeta": {"C": 10.0, "nu": 0.1},
    "AverageKernelSVM": {"C": 10.0},
}
SIZES = [("objects-102", 204), ("objects-102", 510), ("pendigits-4", 1500), ("pendigits-4", 4000)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the smallest size only")
    options = parser.parse_args()
    pd.set_option("display.width", 160)
    for task, n in SIZES[:1] if options.quick else SIZES:
        with threadpool_limits(1):
            found = exp.compare([[m, p] for m, p in PARAMS.items()], 0, task=task, n_train=n, n_test=1000)
        ratios = exp.with_ratios(found.assign(seed=0), [])
        ratios = ratios.drop(columns=["error_sd", "chosen"])
        print(f"\n{task}, n = {n}, C = 10\n{ratios.to_string(index=False, float_format='%.4g')}")


if __name__ == "__main__":
    main()
