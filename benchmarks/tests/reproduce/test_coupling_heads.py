"""The quick path of Coupling's heads from zero."""

import pandas as pd

from benchmarks.reproduce import coupling_heads


def test_the_quick_path_runs_every_part_on_the_digits(tmp_path, capsys):
    coupling_heads.main(["--quick", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    for part in set(coupling_heads.PARTS) - {"dimension"}:
        found = pd.read_csv(tmp_path / f"coupling_heads_{part}.csv")
        assert found["accuracy"].between(0.5, 1).all()
        assert f"{part}\n\n|  | {found['method'].iloc[0]} |" in printed


def test_a_split_gives_private_and_public_rows_that_share_none():
    X, y, X_pub, y_pub, X_test, _ = coupling_heads.split("digits", 0.2, None, "split", 0)
    assert len(X) + len(X_pub) + len(X_test) == 1797 and len(y) == len(X) and len(y_pub) == len(X_pub)
    rows = {row.tobytes() for row in X} & {row.tobytes() for row in X_pub}
    assert not rows
