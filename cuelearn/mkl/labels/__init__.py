"""Several labels per sample: one combination of kernels for all labels (`mlmkl`), or one per label (`gmkl`,
`vskl`)."""
