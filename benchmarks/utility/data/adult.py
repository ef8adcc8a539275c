"""Adult: who earns more than 50,000 dollars a year, from a census of 1994.

Categories and bounds are those of the survey's own description, written down here: nothing is
learnt from private rows. What is missing ("?") is zero in all columns of its query.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ..problems import Array, Rows
from .files import data_folder

#: Smallest and largest value that the survey admits; values beyond are moved there.
BOUNDS = {"age": (17, 90), "education-num": (1, 16), "hours-per-week": (1, 99)}

#: Dollars, on a logarithmic scale from 1.
DOLLARS = {"capital-gain": 99_999, "capital-loss": 4_356}

CATEGORIES = {
    "workclass": "Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov "
    "Without-pay",
    "education-num": " ".join(str(level) for level in range(1, 17)),
    "marital-status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married "
    "Separated Widowed",
    "occupation": "Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
    "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support "
    "Transport-moving",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "native-country": "United-States Mexico",  # elsewhere: neither
}


def load(cache: Path) -> Rows:
    """32,561 rows for training and 16,281 for the test, 65 features; two classes."""
    folder = data_folder("adult")
    parts = [pd.read_csv(folder / f"{part}.csv.xz") for part in ("train", "test")]
    (X, y), (X_test, y_test) = ((features(part), _labels(part)) for part in parts)
    return Rows(X, y, X_test, y_test)


def features(table: pd.DataFrame) -> Array:
    """Numbers scaled to [0, 1] and one column for each category, float32."""
    columns = [(table[name].clip(low, high) - low) / (high - low) for name, (low, high) in BOUNDS.items()]
    columns += [np.log1p(table[name].clip(0, most)) / np.log1p(most) for name, most in DOLLARS.items()]
    for name, categories in CATEGORIES.items():
        given = table[name].astype(str).str.strip()
        columns += [given == category for category in categories.split()]
    return np.column_stack(columns).astype(np.float32)


def _labels(table: pd.DataFrame) -> Array:
    return (table["income"].str.strip() == ">50K").to_numpy().astype(int)
