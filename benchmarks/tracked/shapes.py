"""The ratios of ``benchmarks.shapes``, which do not depend on the speed of a machine."""

import sys
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shapes import FITS, PASSES, measure_fit, measure_pass, shape_of


class Passes:
    """Processor time of the private sums of one step, in times of its matrix products."""

    unit = "ratio"
    timeout = 600
    param_names: ClassVar = ["rows, features, classes"]
    params: ClassVar = [shape_of(size) for size in PASSES]

    def track_products(self, shape: str) -> float:
        (size,) = (size for size in PASSES if shape_of(size) == shape)
        return float(measure_pass(size, turns=5)["pass / products"])


class Fits:
    """Processor time of a default fit, in times of scikit-learn's ``lbfgs``."""

    unit = "ratio"
    timeout = 1200
    param_names: ClassVar = ["place in FITS"]
    params: ClassVar = [*range(len(FITS))]

    def track_lbfgs(self, place: int) -> float:
        return float(measure_fit(FITS[place], turns=1)["fit / lbfgs"])
