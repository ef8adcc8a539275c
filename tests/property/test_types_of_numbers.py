"""One odd private number widens the type of its column, and changes no other row that a transformer gives."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import Normalizer, SplineTransformer, StandardScaler

from skmixdp.preprocessing import PublicOnly, PublicWhitener, RowNormalizer

RNG = np.random.default_rng(0)
PUBLIC = pd.DataFrame(RNG.standard_normal((30, 3)), columns=list("abc"))
#: Frames of single precision, but for one cell of the second that it cannot hold.
SHORT = pd.DataFrame(RNG.standard_normal((40, 3)).astype(np.float32), columns=list("abc"))
ODD = SHORT.astype({"a": np.float64})
ODD.iloc[0, 0] += 1e-9

CONTAINERS = {
    "pandas": lambda frame: frame,
    "nullable": lambda frame: frame.astype(
        {name: str(dtype).title() for name, dtype in frame.dtypes.items()}
    ),
    "objects": lambda frame: frame.astype(object),
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame),
    "pyarrow": lambda frame: pytest.importorskip("pyarrow").Table.from_pandas(frame),
}
TRANSFORMERS = {
    "rows": RowNormalizer(),
    "scaled": PublicOnly(StandardScaler()),
    "unit": PublicOnly(Normalizer()),
    "splines": PublicOnly(SplineTransformer(n_knots=3)),
    "whitened": PublicWhitener(),
}


@pytest.mark.parametrize("transformer", TRANSFORMERS.values(), ids=TRANSFORMERS)
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_other_rows_keep_their_bits(container, transformer):
    public = {} if isinstance(transformer, RowNormalizer) else {"X_pub": container(PUBLIC)}
    fitted = transformer.fit(container(SHORT), **public)
    short, odd = (np.asarray(fitted.transform(container(frame))) for frame in (SHORT, ODD))
    assert short.dtype == odd.dtype == np.float64
    assert np.array_equal(short[1:], odd[1:]) and not np.array_equal(short[0], odd[0])
