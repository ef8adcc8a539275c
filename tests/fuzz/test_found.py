"""What fuzzing found, as named examples. Each failed before it was fixed."""

import csv
import io
import json
import sqlite3
import warnings
from contextlib import nullcontext
from dataclasses import fields
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import skmixdp
from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.algorithms import GEP, PAZO, AdaMix, DPZero, ModelMix, NoisyGD
from skmixdp.datasets import open_rows
from skmixdp.inspection import model_card
from skmixdp.model_selection import PrivateSearchCV
from skmixdp.preprocessing import RowNormalizer
from skmixdp.privacy import GaussianEvent, PrivacyLedger, epsilon_of, noise_multiplier_for, report
from tests.parameters import BadRepr
from tests.private_names import (
    InputError,
    TextForm,
    _read_options,
    declared_columns,
    event_from_json,
    event_to_json,
    main,
    read_rows,
)
from tests.rounding import assert_close

from .limits import check_message
from .test_files import ledger_bytes, models, parts_of, with_checksum

pytestmark = pytest.mark.filterwarnings("ignore:many private rows", "ignore:delta=")

RNG = np.random.default_rng(0)
X, X_PUB = RNG.normal(size=(16, 3)), RNG.normal(size=(9, 3))
Y, Y_PUB = np.arange(16) % 3, np.arange(9) % 3


def fit(features=X, y=Y, public=(X_PUB, Y_PUB), head=MixedDPLogisticRegression, **parameters):
    return head(**{"n_steps": 2, "delta": 1e-3, **parameters}).fit(features, y, *public)


def ridge(**parameters):
    return fit(y=X[:, 0], public=(X_PUB, X_PUB[:, 0]), head=MixedDPRidge, **parameters)


@pytest.fixture
def data():
    return PrivacyLedger(":memory:").add_dataset("d", epsilon=9.0, delta=1e-3)


class TestMessages:
    @pytest.mark.parametrize(
        "value", [BadRepr(), "x" * 5000, [0] * 5000, np.zeros((2, 2)), 10**5000], ids=type
    )
    @pytest.mark.parametrize("name", ["n_steps", "algorithm", "classes", "init", "device", "epsilon"])
    @pytest.mark.untraced
    def test_the_value_is_shown_in_one_short_line(self, name, value):
        with pytest.raises((ValueError, TypeError)) as caught:
            fit(**{name: value})
        check_message(str(caught.value), [name])
        assert len(str(caught.value)) < 700

    @pytest.mark.parametrize("name", ["init", "target_center", "target_scale"])
    def test_integers_beyond_floats(self, name):
        with pytest.raises(ValueError, match=f"^{name}="):
            ridge(**{name: 10**400})

    @pytest.mark.parametrize("where", ["X", "X_pub", "predict"])
    def test_sparse_rows_with_indices_out_of_their_shape(self, where):
        broken, clf = sp.csr_array(X), fit()
        broken.indices = broken.indices + 7
        uses = {
            "X": lambda: fit(broken),
            "X_pub": lambda: fit(public=(broken, Y)),
            "predict": lambda: clf.predict(broken),
        }
        with pytest.raises(ValueError, match=r"^X(_pub)? is a damaged sparse matrix"):
            uses[where]()

    def test_no_sparse_rows_to_predict(self):
        with pytest.raises(ValueError, match=r"^X has 0 sample"):
            fit().predict(sp.csr_array((0, 3)))

    @pytest.mark.parametrize(("name", "value"), [("norm", "l3"), ("copy", 1)])
    def test_parameters_of_a_row_normalizer(self, name, value):
        with pytest.raises(ValueError, match=name):
            RowNormalizer(**{name: value}).fit(X)


class TestBudgets:
    @pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.999])
    @pytest.mark.parametrize("epsilon", [1e-99, 1e-45, 1e-8, 1e-3, 1e10, 1e15, 1e16])
    def test_extreme_budgets_are_kept(self, epsilon, delta):
        noise = noise_multiplier_for(epsilon, delta, n_steps=1)
        assert epsilon_of(noise, 1, delta=delta) <= epsilon

    @pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1e200])
    def test_budgets_beyond_arithmetic_are_refused(self, epsilon):
        with pytest.raises(ValueError, match=r"^epsilon=.* out of the range"):
            ridge(epsilon=epsilon)

    @pytest.mark.parametrize("epsilon", [1e4, 1e15])
    def test_sampled_batches_of_huge_budgets_end(self, epsilon):
        assert 0 < noise_multiplier_for(epsilon, 0.999, n_steps=3, sampling_rate=0.1) < 1
        assert epsilon_of(1e-6, 3, delta=1e-5, sampling_rate=0.1) < np.inf

    def test_sampled_batches_of_a_tiny_delta_have_a_finite_epsilon(self):
        assert epsilon_of(0.5, 3, delta=1e-300, sampling_rate=0.5) < 1000

    def test_public_rows_of_infinite_length(self):
        with warnings.catch_warnings(action="error", category=RuntimeWarning):
            fit(1e300 * X, X[:, 0], (1e300 * X_PUB, X_PUB[:, 0]), MixedDPRidge, algorithm="adamix")

    def test_hopeless_delta_with_sampled_batches_ends(self):
        assert noise_multiplier_for(1e-3, 0.999, n_steps=1, sampling_rate=0.5) > 0

    def test_wide_mixing_is_refused(self):
        with pytest.raises(ValueError, match=r"^width="):
            ridge(algorithm=ModelMix(width=1e300))


class TestNumbers:
    def test_labels_beyond_64_bits(self):
        classes = 1e300 * np.arange(1, 4)
        with pytest.raises(ValueError, match=r"^Unknown label type"):
            fit(y=classes[Y], public=(X_PUB, classes[Y_PUB]))

    def test_strong_public_penalty(self):
        assert np.isfinite(ridge(algorithm="pda-dpmd", public_l2=1e99).coef_).all()
        with pytest.raises(ValueError, match=r"^public_l2="):
            ridge(public_l2=1e300)

    @pytest.mark.parametrize(
        "algorithm", [AdaMix(clip_floor=1.7e308), NoisyGD(1e300), PAZO("m", loss_clip=1e200)]
    )
    def test_clips_whose_squares_overflow(self, algorithm):
        with pytest.raises(ValueError, match=r"clip.*=.* up to 1e100"):
            fit(algorithm=algorithm)

    @pytest.mark.parametrize("n_long", [1, 3, 6])
    def test_public_rows_of_which_some_are_huge(self, n_long):
        X_pub = np.where(np.arange(6)[:, None] < n_long, 1e300, X_PUB[:6])
        fit(y=X[:, 0], public=(X_pub, X_PUB[:6, 0]), head=MixedDPRidge)

    @pytest.mark.parametrize("head", [MixedDPLogisticRegression, MixedDPRidge])
    @pytest.mark.parametrize("n_features", [3, 80])
    def test_a_row_that_overflows_when_it_is_centred(self, tmp_path, head, n_features):
        """It is one row among others on every source; it ended fits, and on disk after they were charged."""
        rng = np.random.default_rng(1)
        rows, X_pub = rng.normal(size=(16, n_features)), np.full((9, n_features), 1e297)
        rows[3, 0] = -np.finfo(np.float64).max
        np.save(tmp_path / "rows.npy", rows)
        path = tmp_path / "rows.npy"
        sources = (rows, np.load(path, mmap_mode="r"), open_rows(path))
        heads = [fit(one, public=(X_pub, Y_PUB), head=head, random_state=0).coef_ for one in sources]
        assert np.isfinite(heads[0]).all()
        for other in heads[1:]:
            np.testing.assert_allclose(other, heads[0], rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize("algorithm", [PAZO("m"), PAZO("p"), PAZO("s"), DPZero()], ids=str)
    def test_public_rows_of_zeros_give_no_directions(self, algorithm):
        fit(public=(0 * X_PUB, Y_PUB), algorithm=algorithm, fit_intercept=False)

    @pytest.mark.parametrize("scoring", [{"a": 1}, {"a": "accuracy"}, ["accuracy", "f1_macro"], 3])
    def test_a_metric_that_is_none_is_refused_before_the_charge(self, scoring, data):
        options = {"scoring": scoring, "delta": 1e-3, "ledger": data}
        search = PrivateSearchCV(MixedDPLogisticRegression(), {"algorithm": ["noisy-gd"]}, **options)
        with pytest.raises(ValueError, match=r"^scoring="):
            search.fit(X, Y, X_PUB, Y_PUB)
        assert not data.charges()

    @pytest.mark.parametrize("multiplier", [1e-38, 1e-60, 1e-100, 1e-120])
    def test_noise_that_is_next_to_none(self, multiplier):
        assert epsilon_of(multiplier, 1, delta=1e-5) > 1e70
        with pytest.raises(ValueError, match=r"too small for one step at noise_multiplier="):
            fit(noise_multiplier=multiplier, n_steps=None)

    @pytest.mark.parametrize("multiplier", [5e-324, 1e-160, 1e121, 1e300])
    def test_noise_beyond_arithmetic(self, multiplier, data):
        with pytest.raises(ValueError, match=r"^noise_multiplier=.* must be a number from 1e-120 to 1e120"):
            fit(epsilon=None, noise_multiplier=multiplier, n_steps=3, ledger=data)
        assert not data.charges()

    def test_public_rows_that_are_too_long(self):
        with pytest.raises(ValueError, match=r"^X_pub holds a row that is too large"):
            fit(public=(1e154 * X_PUB, Y_PUB), rows=RowMapping(norm=None))

    @pytest.mark.parametrize(
        ("algorithm", "rate"),
        [
            ("auto", 1e300),
            *[(AdaMix(n_components=2), rate) for rate in (1e100, 1e160, 4e307)],
            *[(GEP(n), rate) for n, rate in product((None, 2), (1e300, 4e307, 1.7e308))],
        ],
    )
    @pytest.mark.parametrize("head", [MixedDPRidge, MixedDPLogisticRegression])
    def test_a_head_that_diverges_is_an_error_and_its_charge_stays(self, head, algorithm, rate, data):
        model = head(algorithm, learning_rate=rate, n_steps=3, delta=1e-3, ledger=data)
        with pytest.raises(ValueError, match=r"diverged.*learning_rate"):
            model.fit(X, Y, X_PUB, Y_PUB)
        assert not hasattr(model, "coef_") and [c.outcome for c in data.charges()] == ["failed: ValueError"]

    @pytest.mark.parametrize("l2", [5e-324, 1e-310, 1e-200])
    def test_a_mirror_map_with_a_tiny_penalty(self, l2):
        assert np.isfinite(fit(algorithm="pda-dpmd", public_l2=l2).coef_).all()

    @pytest.mark.parametrize("rate", [1e200, 4e307, 1.7e308])
    def test_a_mirror_step_that_diverges(self, rate):
        with pytest.raises(ValueError, match=r"diverged.*learning_rate"):
            fit(algorithm="pda-dpmd", learning_rate=rate, n_steps=3)

    def test_huge_sparse_rows_are_predicted_as_dense_ones(self):
        huge = np.array([[1.79e308, 9e15, 1.0], [-1.79e308, 1.79e308, -1.79e308], [1e300, 1.0, 0.0]])
        model = fit()
        assert_close(model.predict_proba(sp.csr_array(huge)), model.predict_proba(huge))

    def test_a_sparse_row_of_infinite_length_whose_products_are_finite(self):
        model = fit(fit_intercept=False)
        model.coef_ = 0.25 * np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])
        huge = 1.79e308 * np.array([[1.0, 1.0, 1.0], [-1.0, 1.0, -1.0], [0.0, 1.0, 1.0]])
        sparse = model.decision_function(sp.csr_array(huge))
        np.testing.assert_allclose(sparse, model.decision_function(huge), atol=1e-12)

    def test_outputs_that_overflow_are_an_error(self):
        model = fit(rows=RowMapping(norm=None), learning_rate=0.1)
        model.coef_ = model.coef_ * 1e200
        with pytest.raises(ValueError, match=r"^X has rows whose outputs are not finite"):
            model.predict_proba(1e200 * X)

    @pytest.mark.untraced
    def test_outputs_of_a_module_that_overflow_are_an_error(self):
        torch = pytest.importorskip("torch")
        module = torch.nn.Linear(3, 3)
        clf = skmixdp.ZerothOrderDPModuleClassifier(module, n_steps=1, delta=1e-3).fit(X, Y, X_PUB, Y_PUB)
        with torch.no_grad():
            clf.module_.weight.fill_(3e38)
        with pytest.raises(ValueError, match=r"^X has rows whose outputs of the module are not finite"):
            clf.predict_proba(X)

    def test_a_file_of_rows_without_columns(self, tmp_path):
        np.save(tmp_path / "rows.npy", np.empty((8, 0)))
        assert sum(len(block) for block in open_rows(tmp_path / "rows.npy").blocks()) == 8

    @pytest.mark.parametrize("suffix", [".feather", ".parquet"])
    def test_a_name_of_a_column_that_is_no_text(self, tmp_path, suffix):
        pytest.importorskip("pyarrow")
        path, frame = tmp_path / f"rows{suffix}", pd.DataFrame({"abcdefgh": [1.0, 2.0], "kind": [0, 1]})
        frame.to_feather(path) if suffix == ".feather" else frame.to_parquet(path)
        path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"\x80bcdefgh"))
        with pytest.raises(ValueError, match=rf"rows\{suffix} .*text that is not UTF-8") as caught:
            open_rows(path, label="kind")
        assert "0x80" not in str(caught.value)


class TestModels:
    @pytest.fixture
    def forged(self, tmp_path):
        """Loads a model of which an attribute is changed."""

        def load(change):
            arrays, texts = parts_of(models()[0][1])
            model = json.loads(texts["model"])
            change(model["attributes"])
            path = tmp_path / "m.safetensors"
            path.write_bytes(with_checksum(arrays, texts | {"model": json.dumps(model)}))
            return skmixdp.load(path)

        return load

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            *(("noise", True), ("accountant", None), ("treated_as_public", "abc"), ("leaks", "abc")),
            *(("shares", {"tuple": [1]}), ("n_private", "7"), ("neighboring", [1]), ("dataset_epsilon", "x")),
            *(("dataset", 3), ("epsilon_unamplified", {"tuple": []}), ("computed_on", 1), ("unit", None)),
            ("mu", {"tuple": [1]}),
        ],
    )
    def test_every_field_of_a_report_is_checked(self, forged, field, value):
        with pytest.raises(ValueError, match=r"cannot be read as a model"):
            forged(lambda attributes: attributes["privacy_"]["values"].update({field: value}))

    @pytest.mark.parametrize("kind", [report.PrivacyReport, report.SearchReport])
    def test_the_tables_of_reports_have_every_field(self, kind):
        listed = kind._allowed | report._DATASET
        assert listed.keys() == {field.name for field in fields(kind)}

    def test_a_narrow_number_in_a_report(self, forged):
        narrow = {"epsilon": {"scalar": 1.5, "dtype": "float32"}}
        loaded = forged(lambda attributes: attributes["privacy_"]["values"].update(narrow))
        assert json.loads(loaded.privacy_.to_json())["epsilon"] == 1.5

    def test_a_message_of_a_file_has_no_line_breaks(self, forged):
        def change(attributes):
            values = attributes["_row_map"]["values"]
            values["a\r\n\x1b[2J"] = values.pop("mean")

        with pytest.raises(ValueError, match=r"m.safetensors") as caught:
            forged(change)
        assert str(caught.value).isprintable()


def test_public_rows_whose_mean_overflows(data):
    with pytest.raises(ValueError, match="public rows have entries so large that their mean overflows"):
        fit(public=(np.full((9, 3), 1.7e308), Y_PUB), n_steps=None, ledger=data)
    assert not data.charges()


def test_a_carriage_return_in_a_name_stays_in_its_cell():
    data = PrivacyLedger(":memory:").add_dataset("a\rb", epsilon=1, delta=1e-5)
    data.charge(GaussianEvent(20, 1), neighboring="zero_out")
    (row,) = csv.DictReader(io.StringIO(data.ledger.report().to_csv(), newline=""))
    assert row["dataset"] == "a\rb"


class TestLedgers:
    @pytest.fixture
    def path(self, tmp_path):
        (tmp_path / "l.sqlite").write_bytes(ledger_bytes())
        return tmp_path / "l.sqlite"

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE accounts SET dataset = NULL",
            *(f"UPDATE accounts SET total = {value}" for value in (0, 1e-9, "total * 0.99")),
            "UPDATE accounts SET n_charges = 0, 'order' = NULL",
            "ALTER TABLE accounts RENAME COLUMN dataset TO other",
            f"UPDATE accounts SET divergences = '{'[' * 3000}'",
            f"UPDATE charges SET private = '{'[' * 3000}'",
            "UPDATE charges SET description = x'00ff'",
            "UPDATE charges SET outcome = x'07'",
            "UPDATE charges SET spent = 'much'",
            "CREATE TRIGGER t AFTER INSERT ON charges BEGIN DELETE FROM charges; END",
        ],
    )
    def test_damaged_cells_are_refused(self, path, statement):
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()

        def use():
            PrivacyLedger(path)["d"].charge(GaussianEvent(50, 1), neighboring="add_or_remove_one")
            str(PrivacyLedger(path).report())

        with pytest.raises((ValueError, OSError), match=r"ledger|charge") as caught:
            use()
        check_message(str(caught.value))

    @pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "\u202eabc", "a\tb\x07"])
    def test_names_stay_in_their_line(self, name):
        ledger = PrivacyLedger(":memory:")
        ledger.add_dataset(name, epsilon=1.0, delta=1e-5)
        lines = str(ledger.report()).split("\n")
        assert len(lines) == 3 and all(line.isprintable() for line in lines)
        assert name in ledger and ledger[name].name == name

    def test_formulas_after_a_space(self, data):
        data.charge(GaussianEvent(50, 1), neighboring="zero_out", description=" \t=1+1")
        assert "' \t=1+1" in data.ledger.report().to_csv()

    @pytest.mark.parametrize("use", ["add", "find", "describe"])
    def test_names_that_no_file_can_hold(self, use):
        ledger, event = PrivacyLedger(":memory:"), GaussianEvent(50, 1)
        data = ledger.add_dataset("d", epsilon=1.0, delta=1e-5)
        uses = {
            "add": lambda: ledger.add_dataset("\ud800", epsilon=1.0, delta=1e-5),
            "find": lambda: ledger["\ud800"],
            "describe": lambda: data.charge(event, neighboring="zero_out", description="\ud800"),
        }
        with pytest.raises(ValueError, match=r"^(name|dataset|description)="):
            uses[use]()

    @pytest.mark.parametrize("name", ["\ud800", "a\nb", "\x1b[2J", "x" * 5000])
    def test_names_in_the_record_of_an_event(self, name):
        record = json.loads(event_to_json(GaussianEvent(3.0, 10)))
        record["values"][name] = 1
        with pytest.raises(ValueError, match="the record of an event is damaged") as caught:
            event_from_json(json.dumps(record))
        check_message(str(caught.value))

    def test_names_in_a_report_and_a_card(self):
        data = PrivacyLedger(":memory:").add_dataset("a\x1b[2J\nb", epsilon=9.0, delta=1e-3)
        names = np.array(["\x1b[31m", "\u202ea", "<b>"])
        clf = fit(y=names[Y], public=(X_PUB, names[Y_PUB]), ledger=data)
        for text in (str(clf.privacy_), str(model_card(clf))):
            assert text.replace("\n", "").isprintable() and "<b>" not in text


class TestText:
    NESTED = "[" * 100_000

    def test_nested_json(self, tmp_path):
        (tmp_path / "columns.json").write_text(self.NESTED)
        with pytest.raises(InputError, match=r"no JSON"):
            declared_columns(tmp_path / "columns.json")
        with pytest.raises(InputError, match=r"not JSON"):
            _read_options(self.NESTED)
        np.savez(tmp_path / "rows.npz", X=X, y=Y, report=self.NESTED)
        rows = read_rows(tmp_path / "rows.npz", "--private", {}, TextForm(), ("--labels", None))
        assert rows.report is None

    @pytest.mark.parametrize("arguments", [["\0"], [".", "--cache", "a\0b"], [".", "--out", "\0.npz"]])
    def test_a_null_character_in_a_path(self, capsys, arguments):
        with pytest.raises(SystemExit) as end:
            main(["extract", "--model", "scattering", "--out", "o.npz", *arguments])
        assert end.value.code == 2 and "null character" in capsys.readouterr().err

    @pytest.mark.parametrize("word", ["a\nb.csv", "\x1b[2J"])
    def test_the_command_line_says_one_printable_line(self, capsys, word):
        with pytest.raises(SystemExit):
            main(["report", "m.safetensors", word])
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and said.strip("\n").isprintable()

    def test_a_name_of_a_column_on_the_screen(self, tmp_path, capsys):
        pd.DataFrame({"a": [1.0], "\x1b[2J": ["x"]}).to_csv(tmp_path / "p.csv", index=False)
        arguments = ["fit", "--private", str(tmp_path / "p.csv"), "--label-column", "\x1b[2J\n"]
        assert main([*arguments, "--out", str(tmp_path / "m.safetensors")]) == 2
        assert capsys.readouterr().err.strip("\n").isprintable()


def test_no_warning_escapes_from_extreme_rows():
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        for scale in (1e-320, 1e-300, 1e300):
            rows, public = np.clip(X, -1, 1) * scale, (np.clip(X_PUB, -1, 1) * scale, Y_PUB)
            fit(sp.csr_array(rows), public=public)
            refused = pytest.raises(ValueError, match=r"X holds a row|X_pub holds a row")
            with refused if scale > 1 else nullcontext():
                fit(rows, public=public, rows=RowMapping(norm=None))
