"""The chapters' experiments: protocols that the notebooks call, each point of a sweep a function."""

import warnings

# The papers take features as they are.
warnings.filterwarnings("ignore", "the columns of cue .* differ in spread", UserWarning)
