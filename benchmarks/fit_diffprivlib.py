"""``python fit_diffprivlib.py rows.npz``: fit once and print seconds and accuracy as JSON.

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
    classifier = LogisticRegression(epsilon=1.0, data_norm=1.0, random_state=0)
    start = time.process_time()
    classifier.fit(rows["X"], rows["y"])
    seconds = time.process_time() - start
    accuracy = float(np.mean(classifier.predict(rows["X_test"]) == rows["y_test"]))
    print(json.dumps({"seconds": seconds, "accuracy": accuracy}))


if __name__ == "__main__":
    main(sys.argv[1])
