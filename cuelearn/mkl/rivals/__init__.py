"""Methods that the papers compare with.

`single` (average and best kernel, KernelPA), `onevsall` (SILP, SimpleMKL, p-norm MKL), `mcmkl`, `lpbeta`.
They share SVMs (`svm`), rounds over classes (`perclass`, `multilabel`) and cutting planes (`cutting`).
"""
