"""Write the numbers of the golden master: ``python -m tests.golden``, after a change that was meant.

``python -m tests.golden bits FILE`` writes everything that the fits leave, to the last bit, and warnings and
reports with it. If the file exists, it compares them instead. Bits are those of one machine.
"""

import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tests.replay import facts_of

from .fits import FITS, coefficients
from .other_fits import OTHER_FITS, numbers, result, without_secrets


def bits(name: str) -> dict[str, Any]:
    """All that a fit leaves."""
    with warnings.catch_warnings(record=True, action="always") as messages, without_secrets():
        found = (FITS | OTHER_FITS)[name]()
    report = getattr(found, "privacy_", None) or getattr(found, "privacy", None)
    facts = {"report": str(report), "warnings": [str(each.message) for each in messages]}
    return facts | facts_of(found, type(found).__name__)


def main() -> None:
    """Write or compare."""
    folder = Path(__file__).parent
    if sys.argv[1:2] != ["bits"]:
        np.savez(folder / "coefficients.npz", **{name: coefficients(name) for name in FITS})
        np.savez(folder / "numbers.npz", **{name: numbers(result(name)) for name in OTHER_FITS})
        return
    path, now = Path(sys.argv[2]), {name: bits(name) for name in FITS | OTHER_FITS}
    if not path.exists():
        path.write_bytes(pickle.dumps(now))
        return
    before, n_different = pickle.loads(path.read_bytes()), 0
    for name, facts in now.items():
        known = before[name]
        differing = [key for key in facts.keys() | known.keys() if facts.get(key) != known.get(key)]
        n_different += bool(differing)
        for key in sorted(differing)[:4]:
            print(f"{name}: {key}: {str(known.get(key))[:300]} and {str(facts.get(key))[:300]}")
    print(f"{len(now) - n_different} of {len(now)} fits are equal to the bit")
    sys.exit(n_different > 0)


if __name__ == "__main__":
    main()
