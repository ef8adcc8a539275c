"""``python -m tests.other_cores``: a core type for OpenBLAS that multiplies in another order than here.

Haswell, or Prescott where the machine's own type uses the kernels of Haswell, as Zen does.
"""

import numpy  # noqa: F401  it loads the library that is asked
from threadpoolctl import threadpool_info

if __name__ == "__main__":
    own = {library.get("architecture") for library in threadpool_info()}
    print("Prescott" if own & {"Haswell", "Zen"} else "Haswell")
