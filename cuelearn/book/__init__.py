"""From executed notebooks to figures, tables and verdicts: the runner, cached sweeps, provenance."""
