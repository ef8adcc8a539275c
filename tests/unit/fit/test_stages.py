"""The contract of stages, for each stage of the list, and the release that the guide adds."""

import importlib.util
import pkgutil
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression
from skmixdp.privacy import PrivacyLedger
from tests.golden.other_fits import result
from tests.private_names import STAGES, ChosenPairs, Knots, Stage, Steps, fit_stage, fit_stages, linear_heads

#: A golden fit of each stage, by the line of the report.
FITS = {
    "knots": "curves, noisy knots",
    "pairs of columns": "curves, chosen pairs",
    "scale of weights": "weights, classes",
    "class counts": "weights, balanced",
    "mean weight": "weights, targets",
    "label shares": "labels, no public rows",
    "check of units": "other units",
    "scale of the targets": "targets, no public rows",
    "columns": "columns, few public rows",
    "length of the rows": "a noisy length",
    "mean": "geometry of private rows",
    "directions": "geometry of private rows",
    "second moment": "a second moment",
    "check of the start": "start left out, targets",
    "lengths of gradients": "targets, lengths of gradients",
    "training": "not centred",
    "comparison": "not centred",
    "temperature": "not whitened",
    "mean prediction": "weights, balanced",
    "residuals": "targets, lengths of gradients",
    "class shares": "not whitened",
}
ALL = {stage.name: type(stage) for stage in STAGES.all if stage.name} | {
    stage.name: stage for stage in (Knots, ChosenPairs)
}


@pytest.fixture
def guide():
    path = Path(__file__).parents[3] / "docs" / "toy_release.py"
    spec = importlib.util.spec_from_file_location("toy_release", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed(monkeypatch, stage):
    """The stage comes last before the training from now on."""
    order = replace(STAGES, before=(*STAGES.before, stage))
    monkeypatch.setattr(linear_heads, "STAGES", order)


def fitted(**parameters):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), np.arange(400) % 3
    X[:, :3] += 2 * np.eye(3)[y]
    head = MixedDPLogisticRegression(epsilon=8.0, **parameters)
    return head.fit(X[60:], y[60:], X[:60], y[:60])


def test_every_file_is_on_the_list_and_every_stage_in_a_file():
    files = {name for _, name, _ in pkgutil.iter_modules(fit_stages.__path__)}
    modules = [import_module(f"{fit_stages.__name__}.{name}") for name in files]
    own = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Stage) and value.__module__ == module.__name__
    }
    assert own == {type(stage) for stage in STAGES.all}
    assert files == {type(stage).__module__.rpartition(".")[2] for stage in STAGES.all}


def test_every_stage_has_a_line_of_its_own_and_a_golden_fit():
    names = [stage.name for stage in STAGES.all if stage.name]
    assert len(set(names)) == len(names) and ALL.keys() == FITS.keys()


@pytest.mark.parametrize("name", FITS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_each_stage_costs_its_price_within_its_limits(monkeypatch, name):
    """The price is asked before the stage runs; the report has what was spent."""
    prices, price = [], ALL[name].price

    def recorded(self, fit):
        prices.append(price(self, fit))
        return prices[-1]

    monkeypatch.setattr(ALL[name], "price", recorded)
    shares = dict(result(FITS[name]).privacy_.shares)
    low, high = ALL[name].limits
    known = [each for each in prices if each and not isinstance(each, Steps)]
    assert known and all(low <= each <= high * (1 + 1e-12) for each in known)
    assert shares[name] <= max(known)


def test_no_record_of_a_fit_has_many_fields():
    records = [each for each in vars(fit_stage).values() if is_dataclass(each)]
    assert len(records) > 8 and max(len(fields(record)) for record in records) <= 14


# -- the release of the guide ----------------------------------------------------------------


@pytest.mark.parametrize("long", [True, False])
def test_the_release_of_the_guide_is_asked_charged_and_reported(monkeypatch, guide, long):
    ledger, starts = PrivacyLedger(":memory:").add_dataset("rows", epsilon=50, delta=1e-4), []

    class Watched(guide.LongRows):
        def run(self, fit, price):
            fit = yield from super().run(fit, price)
            starts.append(fit.settings.init)
            return fit

    monkeypatch.setattr(guide, "_are_long", lambda Z, block: np.full((len(block.norms), 1), long))
    listed(monkeypatch, Watched())
    shares = dict(fitted(ledger=ledger).privacy_.shares)
    low, high = guide.LongRows.limits
    assert low <= shares["long rows"] <= high and sum(shares.values()) == pytest.approx(1.0, abs=1e-12)
    assert len(ledger.charges()) == 1 and starts == ["public" if long else "zeros"]


def test_a_stage_that_spends_more_than_its_price_is_stopped(monkeypatch):
    class Greedy(ALL["check of the start"]):
        def run(self, fit, price):
            return super().run(fit, 2 * price)

    listed(monkeypatch, Greedy())
    with pytest.raises(RuntimeError, match="'check of the start' has spent more than its price"):
        fitted()


def test_a_stage_that_is_free_asks_nothing(monkeypatch, guide):
    class Free(guide.LongRows):
        outcomes = Stage.outcomes

        def price(self, fit):
            return 0.0

        def run(self, fit, price):
            return super().run(fit, 0.01)

    listed(monkeypatch, Free())
    with pytest.raises(RuntimeError, match="Free is free and asks private rows"):
        fitted()
