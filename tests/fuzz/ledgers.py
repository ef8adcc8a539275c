"""A ledger as a state machine next to a simple model, and hostile names wherever names are shown."""

import csv
import io
import json
import math
import pickle
import tempfile
import unicodedata
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scipy.optimize import brentq
from scipy.stats import norm

from skmixdp import MixedDPLogisticRegression
from skmixdp.exceptions import BudgetExceededError
from skmixdp.inspection import model_card
from skmixdp.model_selection import PrivateSearchCV
from skmixdp.preprocessing import check_pipeline
from skmixdp.privacy import GaussianEvent, PrivacyLedger

from .harness import (
    BAD_INPUT,
    Draw,
    PromiseError,
    Tally,
    attempt,
    case,
    check_html,
    check_message,
    describe,
    fresh_folder,
)
from .values import HOSTILE, NAMES

RELATIONS = ("add_or_remove_one", "zero_out", "replace_one")


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Epsilon of Gaussian DP by its textbook formula (Balle and Wang 2018), as an oracle."""
    if mu == 0:
        return 0.0

    def excess(epsilon: float) -> float:
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta

    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, 400.0, xtol=1e-13))


def ledger_machine(tally: Tally) -> type:
    """Charges, refusals, outcomes, copies and reopened files, compared with sums of squares."""

    class LedgerMachine(RuleBasedStateMachine):
        @initialize(in_file=st.booleans())
        def begin(self, in_file: bool) -> None:
            self.folder = tempfile.TemporaryDirectory(prefix="fuzz-") if in_file else None
            path: Any = ":memory:" if self.folder is None else Path(self.folder.name) / "l.sqlite"
            self.ledger = PrivacyLedger(path)
            self.model: dict[str, dict[str, Any]] = {}
            self.made: list[Any] = []

        def teardown(self) -> None:
            tally.cases += 1
            if getattr(self, "folder", None) is not None:
                self.ledger = None
                self.folder.cleanup()

        @rule(
            name=st.sampled_from([*NAMES[:40], "a"]),
            epsilon=st.sampled_from([1.0, 3.0, 0.1, 10.0, math.nan, 0.0]),
            delta=st.sampled_from([1e-5, 1e-3, 1.0]),
        )
        def add(self, name: str, epsilon: float, delta: float) -> None:
            valid = name != "" and epsilon > 0 and 0 < delta < 1
            known = self.model.get(name)
            same = known is None or (known["epsilon"], known["delta"]) == (epsilon, delta)
            try:
                self.ledger.add_dataset(name, epsilon=epsilon, delta=delta, composition="gaussian")
            except ValueError as error:
                tally.ended["refused"] += 1
                check_message(str(error), ("name", "epsilon", "delta"))
                if valid and same:
                    raise PromiseError(f"a data set is refused: {error}") from error
                return
            if not (valid and same):
                raise PromiseError("a data set with another budget is taken")
            tally.ended["done"] += 1
            self.model.setdefault(name, {"epsilon": epsilon, "delta": delta, "squares": [], "relation": None})

        @precondition(lambda self: self.model)
        @rule(
            which=st.integers(0, 50),
            noise=st.sampled_from([20.0, 5.0, 100.0, 2.0, 1.0, 1e6, 1e-3]),
            n_steps=st.integers(1, 30),
            relation=st.sampled_from(RELATIONS),
            private=st.booleans(),
        )
        def charge(self, which: int, noise: float, n_steps: int, relation: str, private: bool) -> None:
            name = [*self.model][which % len(self.model)]
            data = self.model[name]
            plain = "add_or_remove_one" if relation == "zero_out" else relation
            shift = 2.0 if relation == "replace_one" else 1.0
            square = n_steps * (shift / noise) ** 2
            mu = math.sqrt(math.fsum([*data["squares"], square]))
            fits = mu < 10 and epsilon_of_mu(mu, data["delta"]) <= data["epsilon"]
            margin = mu < 10 and abs(epsilon_of_mu(mu, data["delta"]) - data["epsilon"]) < 1e-6
            before = self.ledger[name].account
            try:
                charge = self.ledger[name].charge(
                    GaussianEvent(noise, n_steps),
                    neighboring=relation,
                    description="=1+1\n<b>",
                    private=private,
                )
            except BudgetExceededError as error:
                tally.ended["refused"] += 1
                check_message(str(error), ("dataset",))
                if (fits and not margin) or self.ledger[name].account != before:
                    raise PromiseError(
                        f"a charge that fits is refused, or a refused one is counted: {error}"
                    ) from error
                return
            except ValueError as error:
                tally.ended["refused"] += 1
                if data["relation"] in (None, plain) or self.ledger[name].account != before:
                    raise PromiseError(f"a charge is refused: {error}") from error
                return
            tally.ended["done"] += 1
            if (not fits and not margin) or data["relation"] not in (None, plain):
                raise PromiseError("a charge beyond the budget, or of another relation, is taken")
            data["squares"].append(square)
            data["relation"] = plain
            self.made.append((name, charge))

        @precondition(lambda self: self.made)
        @rule(
            which=st.integers(0, 50),
            outcome=st.sampled_from(["finished", "open", "failed: ValueError", "", "lost"]),
        )
        def outcome(self, which: int, outcome: str) -> None:
            name, charge = self.made[which % len(self.made)]
            try:
                self.ledger[name].record_outcome(charge, outcome)
            except ValueError:
                if outcome in ("finished", "open") or outcome.startswith("failed: "):
                    raise
                return
            if (
                self.ledger[name]
                .charges()[[c.id for c in self.ledger[name].charges()].index(charge.id)]
                .outcome
                != outcome
            ):
                raise PromiseError("an outcome is not recorded")

        @rule(name=st.sampled_from(NAMES))
        def unknown(self, name: str) -> None:
            if name in self.model:
                return
            try:
                self.ledger[name]
            except (KeyError, ValueError):
                return
            raise PromiseError(f"{name!r} was never added")

        @precondition(lambda self: self.folder is not None)
        @rule(by_pickle=st.booleans())
        def reopen(self, by_pickle: bool) -> None:
            again = pickle.loads(pickle.dumps(self.ledger)) if by_pickle else PrivacyLedger(self.ledger.path)
            self.ledger = again

        @invariant()
        def agrees(self) -> None:
            if not hasattr(self, "ledger") or self.ledger is None:
                return
            if [*self.ledger] != [*self.model]:
                raise PromiseError(f"the ledger has {[*self.ledger]}")
            for name, data in self.model.items():
                spent = self.ledger[name].spent
                exact = epsilon_of_mu(math.sqrt(math.fsum(data["squares"])), data["delta"])
                if not exact * (1 - 1e-6) - 1e-9 <= spent <= min(exact * (1 + 1e-6) + 1e-9, data["epsilon"]):
                    raise PromiseError(f"{spent} is spent, and {exact} by the formula")
                if len(self.ledger[name].charges()) != len(data["squares"]):
                    raise PromiseError("charges are lost")

    return LedgerMachine


# -- names ----------------------------------------------------------------------------------


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.inside = tag in ("td", "h2")
        if self.inside:
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.cells[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.inside = False if tag in ("td", "h2") else self.inside


def check_text(text: str, n_lines: int | None = None) -> None:
    """Printed text has no control characters, and as many lines as it should."""
    if controls := [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cs", "Cf")]:
        raise PromiseError(f"the text has the control characters {controls[:5]!a}: {text[:300]!a}")
    if n_lines is not None and len(text.splitlines()) != n_lines:
        raise PromiseError(f"the text has {len(text.splitlines())} lines and not {n_lines}: {text!a}")


def hostile_name(draw: Draw) -> str:
    """A name from the list, two of them together, or any text."""
    kind = draw.whole(0, 3)
    if kind < 2:
        return str(draw.pick(NAMES))
    return draw.pick(NAMES) + draw.pick(NAMES) if kind == 2 else draw.text(max_size=12)


def check_ledger_names(draw: Draw, tally: Tally) -> None:
    """Names of data sets, descriptions and users: in text, CSV, HTML, JSON, and in a fit's report."""
    names = [hostile_name(draw) for _ in range(draw.whole(1, 3))]
    description = hostile_name(draw)
    describe(names=names, description=description)
    with case(tally):
        ledger = PrivacyLedger(":memory:")
        charges = 0
        for name in dict.fromkeys(names):
            add = lambda name=name: ledger.add_dataset(name, epsilon=1.0, delta=1e-5)  # noqa: E731
            end = attempt(tally, add, ValueError)
            if end.error is not None:
                check_message(end.message, ("name",))
                if name and not _has_surrogates(name):
                    raise PromiseError(f"the name {name!a} is refused")
                continue
            charging = lambda data=end.result: data.charge(  # noqa: E731
                GaussianEvent(20, 1), neighboring="zero_out", description=description
            )
            end = attempt(tally, charging, ValueError)
            tally.ended.subtract(["done" if end.error is None else type(end.error).__name__])
            if end.error is None:
                ledger[name].record_outcome(end.result, "failed: ValueError")
                charges += 1
            elif not _has_surrogates(description):
                raise PromiseError(f"the description {description!a} is refused") from end.error
        report = ledger.report()
        added = [*ledger]
        check_text(str(report), 2 + len(added) + charges)
        check_html(report.to_html(), [*names, description])
        cells = _Text()
        cells.feed(report.to_html())
        shown = [cell.replace("\r\n", "\n").replace("\r", "\n") for cell in cells.cells]
        for name in added:
            plain = name.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "\ufffd")
            if name.isprintable() and plain not in shown:
                raise PromiseError(f"the page shows {name!a} nowhere: {shown}")
        rows = list(csv.DictReader(io.StringIO(report.to_csv(), newline="")))
        if len(rows) != charges:
            raise PromiseError(f"the CSV file has {len(rows)} rows")
        for row in rows:
            for text in row.values():
                if str(text).lstrip().startswith(("=", "+", "-", "@")):
                    raise PromiseError(f"the CSV file holds the formula {text!a}")
        loaded = json.loads(report.to_json())
        if [entry["dataset"] for entry in loaded["datasets"]] != added:
            raise PromiseError("JSON has other names")


def _has_surrogates(text: str) -> bool:
    return any(unicodedata.category(c) == "Cs" for c in text)


@cache
def _rows() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(20, 2)), np.arange(20) % 2, rng.normal(size=(8, 2)), np.arange(8) % 2


def check_shown_names(draw: Draw, tally: Tally) -> None:
    """Names of classes, columns and data sets: in boxes, reports, model cards, messages and saved files."""
    X, y, X_pub, y_pub = _rows()
    classes = [hostile_name(draw), hostile_name(draw)]
    columns = [hostile_name(draw), hostile_name(draw)]
    hostile = [*classes, *columns]
    dataset = hostile_name(draw)
    describe(classes=classes, columns=columns, dataset=dataset)
    if classes[0] == classes[1] or any(map(_has_surrogates, hostile)):  # pandas takes no such text
        return
    labels = np.array(classes, dtype=object)
    frames = [pd.DataFrame(rows, columns=columns) for rows in (X, X_pub)]
    with fresh_folder() as folder, case(tally, folder):
        ledger = PrivacyLedger(":memory:")
        data = (
            None
            if _has_surrogates(dataset) or not dataset
            else ledger.add_dataset(dataset, epsilon=9.0, delta=1e-3)
        )
        clf = MixedDPLogisticRegression("noisy-gd", n_steps=1, random_state=0, ledger=data)
        fit = lambda: clf.fit(frames[0], labels[y], frames[1], labels[y_pub])  # noqa: E731
        end = attempt(tally, fit, *BAD_INPUT)
        if end.error is not None:
            check_message(end.message.replace("\n", " "), ("X", "X_pub", "y", "y_pub", "classes", "names"))
            return
        check_html(clf._repr_html_(), hostile, scripts=99)
        check_html(clf.privacy_._repr_html_(), [*hostile, dataset])
        check_text(str(clf.privacy_))
        check_html(str(model_card(clf, title=hostile_name(draw), description=dataset)), hostile)
        check_text(str(model_card(clf)))
        check_text(str(check_pipeline(clf)))
        if set(clf.predict(frames[0])) - set(classes):
            raise PromiseError("classes changed")
        clf.set_params(ledger=None)
        saved = attempt(tally, lambda: clf.save("m.safetensors"), ValueError, TypeError)
        if saved.error is None:
            from skmixdp import load

            again = load("m.safetensors")
            if again.classes_.tolist() != clf.classes_.tolist() or list(again.feature_names_in_) != columns:
                raise PromiseError("names changed in a file")
        other = pd.DataFrame(X, columns=[*reversed(columns)]) if columns[0] != columns[1] else X
        refused = attempt(tally, lambda: clf.predict(other), ValueError)
        tally.ended.subtract(["done", "done" if refused.error is None else "ValueError"])


# -- searches -------------------------------------------------------------------------------


def check_searches(draw: Draw, tally: Tally) -> None:
    """Searches with hostile grids, budgets, strategies and rows."""
    X, y, X_pub, y_pub = _rows()
    n = draw.pick((20, 20, 8, 3, 2, 1))
    X, y = X[:n].copy(), y[:n]
    if draw.chance(6):
        y = np.zeros_like(y)
    if draw.chance(6) and X.size:
        X[0, 0] = draw.pick((np.nan, 1e300, 5e-324, np.inf))
    grids: tuple[Any, ...] = (
        {"algorithm": ["noisy-gd"]},
        {"algorithm": ["noisy-gd", "adamix"]},
        {"l2": [0.0, 1e-3]},
        [{"l2": [0.0]}, {"learning_rate": [0.1]}],
        *(
            {},
            [],
            {"l2": []},
            {"nothing": [1]},
            {"epsilon": [1.0, 2.0]},
            {"l2": 3},
            {"l2": "ab"},
            {"algorithm": "adamix"},
        ),
        *(
            {"l2": [-1.0]},
            {"random_state": [0, 1]},
            {"ledger": [None]},
            {"noise": ["float", "discrete"]},
            None,
            7,
        ),
        *(
            {"batch_size": [None, 3]},
            {1: [2]},
            {"delta": [1e-5]},
            {"algorithm": [None, 3]},
            {"l2": [np.nan]},
            "l2",
        ),
        {"n_steps": [1, 2]},
    )
    given: dict[str, Any] = {"random_state": 0, "delta": 1e-3, "n_trials": draw.pick((None, 2, 3))}
    for _ in range(draw.pick((0, 0, 1, 2))):
        name = draw.pick(
            (
                "epsilon",
                "delta",
                "scoring",
                "score_share",
                "holdout",
                "strategy",
                "n_trials",
                "distribution",
                "refit",
                "n_jobs",
                "ledger",
                "verbose",
                "estimator",
            )
        )
        given[name] = draw.pick(HOSTILE)
    large = given["n_trials"]
    if isinstance(large, (int, float)) and not isinstance(large, bool) and large > 50:
        return
    if given.get("n_jobs") is not None and not isinstance(given["n_jobs"], bool):
        given.pop("n_jobs")  # other processes would take seconds each
    if isinstance(given.get("verbose"), int) and given["verbose"]:
        given.pop("verbose")
    grid = draw.pick(grids)
    public = {} if draw.chance(4) else {"X_pub": X_pub, "y_pub": y_pub}
    estimator = MixedDPLogisticRegression("noisy-gd", n_steps=None, classes=draw.pick((None, [0, 1])))
    describe(grid=grid, given=given, n=n, y=y, public=sorted(public))
    with case(tally, pickles=True):
        ledger = PrivacyLedger(":memory:")
        data = ledger.add_dataset("d", epsilon=1e16, delta=0.9999)

        def act() -> Any:
            options = {"ledger": data, **given}
            chosen = options.pop("estimator", estimator)
            return PrivateSearchCV(chosen, grid, **options).fit(X, y, **public)

        end = attempt(tally, act, *BAD_INPUT, RuntimeError)
        charges = data.charges()
        if end.error is not None:
            check_message(end.message.replace("\n", " "))
            late = isinstance(end.error, RuntimeError)
            if charges and not late:
                raise PromiseError(f"a refused search was charged: {end.message}") from end.error
            return
        search = end.result
        if len(charges) != 1 and given.get("ledger", data) is data:
            raise PromiseError(f"a search was charged {len(charges)} times")
        if not np.all(np.isfinite(search.best_estimator_.coef_)):
            raise PromiseError("the winner is not finite")
        if not np.isfinite(search.predict_proba(_rows()[0])).all():
            raise PromiseError("predictions are not finite")
        check_html(search._repr_html_(), (), scripts=99)
        str(search.privacy_)
