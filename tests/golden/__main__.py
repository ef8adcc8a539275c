"""Write the coefficients of the golden master: ``python -m tests.golden``, after a change that was meant."""

from pathlib import Path

import numpy as np

from .fits import FITS, coefficients

np.savez(Path(__file__).with_name("coefficients.npz"), **{name: coefficients(name) for name in FITS})
