"""``python fit_diffprivlib.py rows.npz``: a fit for each budget, as JSON.

Of each fit: CPU seconds, accuracy and balanced accuracy.

Run by the interpreter of another environment; it imports nothing of this folder.
"""

import json
import sys
import time
import warnings

import numpy as np


def main(path: str) -> None:
    warnings.simplefilter("ignore")
    from diffprivlib.models import LogisticRegression

    rows = np.load(path)
    found = []
    for epsilon in rows["epsilons"]:
        head = LogisticRegression(
            epsilon=float(epsilon), data_norm=1.0, C=float(rows["C"]), random_state=int(rows["seed"])
        )
        start = time.process_time()
        head.fit(rows["X"], rows["y"])
        seconds = time.process_time() - start
        right = head.predict(rows["X_test"]) == rows["y_test"]
        recalls = [right[rows["y_test"] == label].mean() for label in np.unique(rows["y_test"])]
        found.append([seconds, float(right.mean()), float(np.mean(recalls))])
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
