"""Methods that the papers compare with.

`single` (average and best kernel, KernelPA), `alternating` (SILP, SimpleMKL, p-norm MKL, MC-MKL), `lpbeta`.
They share SVMs (`svm`), rounds over classes and cutting planes (`perclass`).
"""
