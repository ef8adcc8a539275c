"""What is killed, cancelled and refused the disk: charges, fits, searches, extraction, and whatever saves."""

import hashlib
import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

import skmixdp
from skmixdp import MixedDPLogisticRegression, fit_many, resumable
from skmixdp.features import FrozenFeatures
from skmixdp.model_selection import PrivateSearchCV, public_params
from skmixdp.privacy import GaussianEvent, NoiseSource, PrivacyLedger
from tests.faults.harness import Job, check_database
from tests.private_names import (
    LostReleaseError,
    Settings,
    _extraction,
    _ledger,
    as_items,
    main,
    write_arrays,
    write_together,
)

DELTA, EPSILON = 1e-3, 50.0
EVENT = GaussianEvent(40.0, 3)
RELATION = "add_or_remove_one"

_rng = np.random.default_rng(0)
X, X_PUB = _rng.normal(size=(60, 5)), _rng.normal(size=(30, 5))
Y, Y_PUB = np.arange(60) % 3, np.arange(30) % 3
PUBLIC = {"X_pub": X_PUB, "y_pub": Y_PUB}


def head(**parameters: Any) -> MixedDPLogisticRegression:
    return MixedDPLogisticRegression("adamix", **({"delta": DELTA, "n_steps": 2} | parameters))


def new_ledger(folder: Path, name: str = "ledger.sqlite") -> Any:
    return PrivacyLedger(folder / name).add_dataset("people", epsilon=EPSILON, delta=DELTA)


def the_ledger(folder: Path) -> Any:
    return PrivacyLedger(folder / "ledger.sqlite")["people"]


def checked_charges(folder: Path) -> list[Any]:
    """The charges of the ledger, which are all counted: the sums of the account are those of its charges."""
    path = folder / "ledger.sqlite"
    check_database(path)
    dataset = the_ledger(folder)
    charges, account = dataset.charges(), dataset.account
    assert account.n_charges == len(charges), f"{account.n_charges} charges counted of {len(charges)}"
    exact = math.fsum(charge.event.mu(RELATION) ** 2 for charge in charges)
    assert math.isclose(account.total, exact, rel_tol=1e-12), f"a sum of {account.total} for {exact}"
    spent = [charge.spent for charge in charges]
    assert spent == sorted(spent) and account.spent == (spent or [0.0])[-1]
    return charges


@contextmanager
def releases_said(say: Callable[[str], None]) -> Iterator[None]:
    """Say "release" before each draw of noise."""
    original = NoiseSource.add_noise

    def add_noise(self: Any, *args: Any) -> Any:
        say("release")
        return original(self, *args)

    NoiseSource.add_noise = add_noise  # type: ignore[method-assign]
    try:
        yield
    finally:
        NoiseSource.add_noise = original  # type: ignore[method-assign]


def visible(folder: Path) -> set[str]:
    """Names of files that somebody could take for results."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {
        name
        for name in found
        if not Path(name).name.startswith(".")
        and not name.endswith((".tmp", "-wal", "-shm", "-journal"))
        and name not in ("ledger.sqlite", "filler")
    }


class Charges(Job):
    """Charges to a ledger, one after another."""

    name = "ledger: charges"

    def prepare(self, folder: Path) -> None:
        new_ledger(folder)

    def run(self, folder: Path, say: Callable[[str], None]) -> None:
        dataset = the_ledger(folder)
        self.dataset = dataset
        for _ in range(6):
            charge = dataset.charge(EVENT, neighboring=RELATION)
            say(f"charged {charge.id}")
            dataset._record_outcome(charge, "finished")
            say(f"finished {charge.id}")

    def cancelled(self, folder: Path) -> None:
        # Others can charge at once, although this process still holds the error and all its frames.
        check_database(folder / "ledger.sqlite")
        if hasattr(self, "dataset"):
            self.dataset.charge(EVENT, neighboring=RELATION, description="after")

    def check(self, folder: Path, said: list[str]) -> None:
        charges = checked_charges(folder)
        told = [int(line.split()[1]) for line in said if line.startswith("charged")]
        recorded = [charge.id for charge in charges if charge.description != "after"]
        assert recorded[: len(told)] == told, f"told of {told}, and the ledger holds {recorded}"
        # The one that was under way may be there or not.
        assert len(recorded) <= len(told) + 1, f"told of {told}, and the ledger holds {recorded}"
        outcomes = {charge.id: charge.outcome for charge in charges}
        for line in said:
            if line.startswith("finished"):
                assert outcomes[int(line.split()[1])] == "finished", f"{line} was lost"

    def again(self, folder: Path, said: list[str]) -> None:
        before = len(checked_charges(folder))
        the_ledger(folder).charge(EVENT, neighboring=RELATION)
        assert len(checked_charges(folder)) == before + 1


class NewLedger(Job):
    """A ledger and its data sets are made."""

    name = "ledger: made"

    def run(self, folder: Path, say: Callable[[str], None]) -> None:
        ledger = PrivacyLedger(folder / "ledger.sqlite")
        say("made")
        for name in "abc":
            ledger.add_dataset(name, epsilon=1.0, delta=DELTA)
            say(f"added {name}")

    def cancelled(self, folder: Path) -> None:
        if (folder / "ledger.sqlite").exists():
            check_database(folder / "ledger.sqlite")

    def check(self, folder: Path, said: list[str]) -> None:
        if not (folder / "ledger.sqlite").exists():
            assert "made" not in said
            return
        names = list(PrivacyLedger(folder / "ledger.sqlite"))
        told = [line.split()[1] for line in said if line.startswith("added")]
        assert names[: len(told)] == told and len(names) <= len(told) + 1, f"{told}, and there are {names}"

    def again(self, folder: Path, said: list[str]) -> None:
        self.run(folder, lambda word: None)
        assert list(PrivacyLedger(folder / "ledger.sqlite")) == ["a", "b", "c"]


class Fit(Job):
    """A fit that is charged to a ledger, of an estimator that was fitted before; then it is saved."""

    name = "fit with a ledger, save"
    old, new = 0.3, 0.5

    def prepare(self, folder: Path) -> None:
        new_ledger(folder)
        head(epsilon=self.old).fit(X, Y, **PUBLIC).save(folder / "model.safetensors")

    def run(self, folder: Path, say: Callable[[str], None]) -> None:
        self.head = head(epsilon=self.old).fit(X, Y, **PUBLIC)
        self.former = self.head.coef_
        self.head.set_params(epsilon=self.new, ledger=the_ledger(folder))
        with releases_said(say):
            self.head.fit(X, Y, **PUBLIC)
        say("fitted")
        self.head.save(folder / "model.safetensors")
        say("saved")

    def cancelled(self, folder: Path) -> None:
        check_database(folder / "ledger.sqlite")
        if not hasattr(self, "former"):
            return
        # The estimator is as it was, or fitted, and can be used.
        report = self.head.privacy_
        assert (self.head.coef_ is self.former) == math.isclose(report.epsilon, self.old, rel_tol=1e-3)
        self.head.predict(X)
        self.head.get_params()

    def check(self, folder: Path, said: list[str]) -> None:
        charges = checked_charges(folder)
        if "release" in said:
            assert len(charges) == 1, f"a release with {len(charges)} charges"
        assert len(charges) <= 1
        if "fitted" in said:
            # A full disk keeps the outcome from being recorded, and the fit goes on.
            assert charges[0].outcome in ("finished", "open"), charges[0].outcome
        elif charges:
            known = ("open", "finished", "failed: KeyboardInterrupt", "failed: OSError")
            assert charges[0].outcome in known, charges[0].outcome
        epsilon = skmixdp.load(folder / "model.safetensors").privacy_.epsilon
        wanted = (self.new,) if "saved" in said else (self.old, self.new)
        assert any(math.isclose(epsilon, own, rel_tol=1e-3) for own in wanted), epsilon
        assert visible(folder) == {"model.safetensors"}, visible(folder)

    def again(self, folder: Path, said: list[str]) -> None:
        before = len(checked_charges(folder))
        fitted = head(epsilon=self.new, ledger=the_ledger(folder)).fit(X, Y, **PUBLIC)
        fitted.save(folder / "model.safetensors")
        assert len(checked_charges(folder)) == before + 1
        assert (skmixdp.load(folder / "model.safetensors").coef_ == fitted.coef_).all()


class FitMany(Fit):
    """Several fits in shared passes: all are charged before the first release."""

    name = "fit_many with a ledger"

    def run(self, folder: Path, say: Callable[[str], None]) -> None:
        heads = [head(epsilon=epsilon, ledger=the_ledger(folder)) for epsilon in (0.2, 0.4, 0.6)]
        with releases_said(say):
            fit_many(heads, X, Y, **PUBLIC)
        say("fitted")

    def cancelled(self, folder: Path) -> None:
        check_database(folder / "ledger.sqlite")

    def check(self, folder: Path, said: list[str]) -> None:
        charges = checked_charges(folder)
        if "release" in said:
            assert len(charges) == 3, f"a release with {len(charges)} of 3 charges"
        assert len(charges) <= 3


class Save(Job):
    """Fitted models replace one another in a file; readers find one of them."""

    name = "save over a model"
    size = 12_000

    def __init__(self) -> None:
        rows = [(X, Y, PUBLIC), (X[:, :3], Y, {"X_pub": X_PUB[:, :3], "y_pub": Y_PUB})]
        self.models = [head(epsilon=0.5).fit(X, y, **public) for X, y, public in rows]

    def prepare(self, folder: Path) -> None:
        self.models[1].save(folder / "model.safetensors")

    def run(self, folder: Path, say: Callable[[str], None]) -> None:
        for i in range(4):
            self.models[i % 2].save(folder / "model.safetensors")
            say(f"saved {i}")

    def check(self, folder: Path, said: list[str]) -> None:
        found = skmixdp.load(folder / "model.safetensors").coef_
        assert any(np.array_equal(found, model.coef_) for model in self.models)
        told = [int(line.split()[1]) for line in said if line.startswith("saved")]
        following = {(told[-1]) % 2, (told[-1] + 1) % 2} if told else {0, 1}
        assert any(np.array_equal(found, self.models[i].coef_) for i in following)
        assert visible(folder) == {"model.safetensors"}, visible(folder)

    def again(self, folder: Path, said: list[str]) -> None:
        self.models[0].save(folder / "model.safetensors")
        assert np.array_equal(skmixdp.load(folder / "model.safetensors").coef_, self.models[0].coef_)


class Search(Job):
    """A search with a ledger and a memory, which goes on where it was interrupted."""

    name = "search with a ledger and a memory"

    def prepare(self, folder: Path) -> None:
        new_ledger(folder)

    def search(self, folder: Path) -> Any:
        search = PrivateSearchCV(
            head(n_steps=None, classes=[0, 1, 2]),
            {"n_steps": [2, 3, 4]},
            epsilon=2.0,
            delta=DELTA,
            strategy="grid",
            ledger=the_ledger(folder),
            memory=folder / "memory",
        )
        return search.fit(X, Y, **public_params(X_PUB, Y_PUB))

    def run(self, folder: Path, say: Callable[[str], None]) -> None:
        with releases_said(say):
            self.search(folder)
        say("result")

    def cancelled(self, folder: Path) -> None:
        check_database(folder / "ledger.sqlite")

    def kept(self, folder: Path) -> list[Any]:
        """The plans on disk, each whole."""
        return [joblib.load(path) for path in folder.rglob("plan.joblib")]

    def check(self, folder: Path, said: list[str]) -> None:
        charges = checked_charges(folder)
        plans = self.kept(folder)
        if "release" in said:
            assert charges, "a release without a charge"
        if "result" in said:
            assert not plans, "a result was handed out and the search could be resumed"
        assert len(charges) <= 1

    def again(self, folder: Path, said: list[str]) -> None:
        before, plans = len(checked_charges(folder)), self.kept(folder)
        fitted = self.search(folder)
        charges = checked_charges(folder)
        # What was charged and not handed out goes on; everything else is charged.
        wanted = 1 if plans else before + 1
        assert len(charges) == wanted, f"{before} charges, {len(plans)} plans, {len(charges)}"
        assert charges[-1].outcome == "finished" and len(fitted.cv_results_["params"]) == 3
        assert not self.kept(folder)
        assert not [name for name in visible(folder) if name.endswith((".joblib", ".pkl"))], visible(folder)


class ResumedFit(Job):
    """A fit with a checkpoint, which goes on where it was interrupted, without a second charge."""

    name = "fit with a checkpoint"

    def prepare(self, folder: Path) -> None:
        new_ledger(folder)

    def run(self, folder: Path, say: Callable[[str], None]) -> None:
        with releases_said(say), resumable(folder / "fit.checkpoint"):
            head(epsilon=self.epsilon, ledger=the_ledger(folder)).fit(X, Y, **PUBLIC)
            say("fitted")
        say("done with the checkpoint")

    epsilon = 0.5

    def cancelled(self, folder: Path) -> None:
        check_database(folder / "ledger.sqlite")

    def check(self, folder: Path, said: list[str]) -> None:
        charges = checked_charges(folder)
        assert len(charges) == 1 or (not charges and "release" not in said)

    def again(self, folder: Path, said: list[str]) -> None:
        over = bool(checked_charges(folder)) and not (folder / "fit.checkpoint").exists()
        assert not over or "fitted" in said, "a charged fit without a checkpoint"
        try:
            self.run(folder, lambda word: None)
        except LostReleaseError:
            return
        assert len(checked_charges(folder)) == 1 + over
        assert not (folder / "fit.checkpoint").exists()


class CommandLine(Job):
    """``skmixdp fit`` on raw tables, which replaces a model with its encoding and a report."""

    name = "command line: fit, encoding, report"
    old, new = 0.3, 0.5

    def prepare(self, folder: Path) -> None:
        new_ledger(folder)
        for name, rows, labels in (("private", X, Y), ("public", X_PUB, Y_PUB)):
            frame = pd.DataFrame(rows, columns=list("abcde"))
            frame.assign(word=np.array(["x", "y"])[labels % 2], kind=labels).to_csv(
                folder / f"{name}.csv", index=False
            )
        assert self.fit(folder, self.old) == 0

    def fit(self, folder: Path, epsilon: float) -> int:
        files = {"private": "private.csv", "public": "public.csv", "out": "m.safetensors", "report": "r.json"}
        argv = [part for flag, name in files.items() for part in (f"--{flag}", str(folder / name))]
        argv += ["--ledger", str(folder / "ledger.sqlite"), "--dataset", "people", "--label-column", "kind"]
        argv += ["--encode", "public", "--epsilon", str(epsilon), "--delta", str(DELTA), "--n-steps", "2"]
        return main(["fit", *argv, "--force", "--quiet"])

    def run(self, folder: Path, say: Callable[[str], None]) -> None:
        with releases_said(say):
            code = self.fit(folder, self.new)
        if code == 130:  # which the command line makes of it
            raise KeyboardInterrupt
        if code != 0:
            raise SystemExit(code)
        say("saved")

    def cancelled(self, folder: Path) -> None:
        check_database(folder / "ledger.sqlite")

    def check(self, folder: Path, said: list[str]) -> None:
        charges = checked_charges(folder)
        assert len(charges) <= 2
        if "release" in said:
            assert len(charges) == 2, "a release without a charge"
        assert not any("with code 1" in line for line in said), said
        self.check_outputs(folder, (self.new,) if "saved" in said else (self.old, self.new))
        assert (folder / "r.json").exists() or "saved" not in said

    def check_outputs(self, folder: Path, wanted: tuple[float, ...]) -> None:
        """The model is whole, and the report is its own if there is one."""
        model = skmixdp.load(folder / "m.safetensors")
        assert type(model).__name__ == "PrivatePipeline"
        epsilon = model.privacy_.epsilon
        assert any(math.isclose(epsilon, own, rel_tol=1e-3) for own in wanted), epsilon
        if (folder / "r.json").exists():
            report = json.loads((folder / "r.json").read_text())
            assert report["epsilon"] == epsilon, "the report of another model"
        assert visible(folder) <= {"private.csv", "public.csv", "m.safetensors", "r.json"}, visible(folder)

    def again(self, folder: Path, said: list[str]) -> None:
        before = len(checked_charges(folder))
        assert self.fit(folder, self.new) == 0
        assert len(checked_charges(folder)) == before + 1
        self.check_outputs(folder, (self.new,))
        assert (folder / "r.json").exists()


class _Network:
    """A frozen network: rows are the bytes of hashes."""

    n_outputs = 64
    description = {"library": "hash", "weights": {"origin": "none", "sha256": "0"}}  # noqa: RUF012

    @staticmethod
    def rows(items: Any, places: list[int]) -> Any:
        texts = [hashlib.sha512(items.digest(place)).digest() for place in places]
        return np.array([list(text) for text in texts], dtype=np.float32)

    def chunks(self, encoder: Any, items: Any, places: list[int], settings: Any) -> Iterator[Any]:
        for i in range(0, len(places), 5):
            chunk = places[i : i + 5]
            yield chunk, self.rows(items, chunk), []


class Extraction(Job):
    """Rows of images are computed, kept in a cache on the way, and written to a file."""

    name = "extraction to disk"
    size = 60_000

    def __init__(self) -> None:
        self.images = np.random.default_rng(1).integers(0, 256, (60, 4, 4, 3), dtype=np.uint8)
        self.items = as_items(self.images, "image")
        self.expected = _Network.rows(self.items, list(range(60)))

    def extract(self, folder: Path) -> Any:
        network = _Network()
        shard_rows, _extraction._SHARD_ROWS = _extraction._SHARD_ROWS, 10
        try:
            settings = Settings("cpu", "float32", 5, 0)
            features = FrozenFeatures(cache=folder / "cache")
            return _extraction.extract(self.items, network, network.chunks, settings, features)
        finally:
            _extraction._SHARD_ROWS = shard_rows

    def run(self, folder: Path, say: Callable[[str], None]) -> None:
        found = self.extract(folder)
        say("extracted")
        write_together({folder / "rows.npz": lambda file: write_arrays(file, X=found.features)})
        say("saved")

    def check(self, folder: Path, said: list[str]) -> None:
        if (folder / "rows.npz").exists():
            with np.load(folder / "rows.npz", allow_pickle=False) as file:
                assert np.array_equal(file["X"], self.expected)
        else:
            assert "saved" not in said
        for path in folder.glob("cache/*/*.npz"):  # as the cache finds its shards
            with np.load(path, allow_pickle=False) as shard:
                assert len(shard["keys"]) == len(shard["rows"]) > 0

    def again(self, folder: Path, said: list[str]) -> None:
        shards = list(folder.glob("cache/*/*.npz"))
        kept = sum(len(np.load(path)["keys"]) for path in shards)
        found = self.extract(folder)
        assert np.array_equal(found.features, self.expected)
        assert found.n_computed == 60 - kept, f"{found.n_computed} computed, and {kept} were kept"


class OldClock(Charges):
    """Charges while the clock is set back before each of them."""

    name = "ledger: charges"
    faults = ("clock",)

    def run(self, folder: Path, say: Callable[[str], None]) -> None:
        _ledger.datetime = _BackwardClock  # type: ignore[attr-defined]
        super().run(folder, say)

    def check(self, folder: Path, said: list[str]) -> None:
        super().check(folder, said)
        with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
            times = [time for (time,) in connection.execute("SELECT time FROM charges ORDER BY id")]
        assert "done" not in said or times == sorted(times, reverse=True), "the clock was not set back"
        assert "failed" not in str(the_ledger(folder).report())


class _BackwardClock(datetime):
    """A clock that is set back by a day whenever it is read."""

    days = 0

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        cls.days += 1
        return datetime(2001, 9, 9, tzinfo=tz) - timedelta(days=cls.days)


JOBS = (Charges, OldClock, NewLedger, Fit, FitMany, Save, Search, ResumedFit, CommandLine, Extraction)
