"""The chapters' drawings: each function takes the numbers of an experiment and returns a figure. Widgets call
the same ones."""
