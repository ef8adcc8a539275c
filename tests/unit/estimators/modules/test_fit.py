"""The classifier with a module: what is trained, what private rows are asked, what is refused."""

import copy
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import skmixdp
from skmixdp import FirstOrderDPModuleClassifier, ZerothOrderDPModuleClassifier
from skmixdp.algorithms import PAZO, DPZero, NoisyGD
from skmixdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skmixdp.privacy import NoiseSource, PrivacyLedger
from tests.conftest import failing
from tests.module_problems import torch
from tests.private_names import dotted_path
from tests.rounding import assert_close

NAMES = ("pazo-m", "pazo-p", "pazo-s", "dpzero")
#: Algorithms that ask for gradients of private rows.
GRADIENTS = ("auto", "noisy-gd", "adamix", "coupling", "pda-dpmd", "modelmix")
nn = torch.nn


@pytest.fixture(autouse=True, scope="module")
def short_starts():
    """What public training finds in few epochs is enough here; its rule has tests of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dotted_path("module_public._EPOCHS"), 30)
        yield


def rows(n, seed, d=6, k=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    centres = np.random.default_rng(9).normal(size=(k, d))
    return (centres[y] + 0.5 * rng.normal(size=(n, d))).astype(np.float32), y


X, Y = rows(300, 1)
X_PUB, Y_PUB = rows(30, 2)
X_TEST, Y_TEST = rows(300, 3)


def network(seed=0, *between):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), *between, nn.ReLU(), nn.Linear(8, 3))


def classifier(name="pazo-m", module=None, **parameters):
    """From the module's own parameters, unless ``init`` says otherwise: a public start takes seconds."""
    given = {"epsilon": 1.0, "delta": 1e-4, "n_steps": 10, "random_state": 0, "init": "module"} | parameters
    if name in GRADIENTS:
        given = {"learning_rate": 0.3, **given}
        return FirstOrderDPModuleClassifier(network() if module is None else module, name, **given)
    settings = {key: given.pop(key) for key in list(given) if key in PAZO().get_params()}
    if settings:
        name = DPZero(**settings) if name == "dpzero" else PAZO(name[-1], **settings)
    return ZerothOrderDPModuleClassifier(network() if module is None else module, name, **given)


def fitted(name="pazo-m", module=None, **parameters):
    return classifier(name, module, **parameters).fit(X, Y, X_pub=X_PUB, y_pub=Y_PUB)


def are_private(rows):
    """Whether rows that pass through a module are private ones, the first of them at least."""
    return bool((rows == torch.from_numpy(X[0])).all(dim=-1).any())


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.covering
@pytest.mark.parametrize("name", [*NAMES, *GRADIENTS])
@pytest.mark.parametrize("batch_size", [None, 100])
def test_every_algorithm_trains_a_copy_and_predicts(name, batch_size):
    module = network()
    before = copy.deepcopy(module)
    rate, epsilon = (0.3, 3.0) if name in GRADIENTS else (0.05, 1.0)
    clf = fitted(name, module, batch_size=batch_size, learning_rate=rate, init="public", epsilon=epsilon)
    assert same(module, before) and module.training
    assert clf.module_ is not module and not clf.module_.training and not same(clf.module_, module)
    assert clf.score(X_TEST, Y_TEST) > 0.8
    assert clf.decision_function(X_TEST).shape == (300, 3)
    assert_close(clf.predict_proba(X_TEST).sum(axis=1), 1)
    assert (clf.predict(X_TEST) == clf.predict_proba(X_TEST).argmax(axis=1)).all()
    assert clf.n_iter_ == 10 and not hasattr(clf, "coef_")
    report = clf.privacy_
    assert (report.n_private, report.n_public, report.epsilon <= epsilon) == (300, 30, True)
    assert any("initial parameters and buffers" in fact for fact in report.treated_as_public)


@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[:3]), "dpzero", *GRADIENTS]
)
def test_the_rule_chooses_steps_and_their_size_for_a_module_too(name):
    module = nn.Linear(6, 3) if name in GRADIENTS else None
    clf = fitted(name, module, n_steps=None, learning_rate="auto", random_state=1, init="public")
    assert 12 <= clf.n_iter_ <= 500 and clf.learning_rate_ > 0
    assert clf.score(X_TEST, Y_TEST) > 0.8


@pytest.mark.parametrize("name", ["pazo-m", "auto"])
def test_clones_pickles_and_files_predict_the_same(tmp_path, name):
    clf = fitted(name)
    twin = clone(clf)
    assert twin.module is not clf.module and same(twin.module, clf.module)
    clf.save(tmp_path / "model.safetensors")
    loaded = skmixdp.load(tmp_path / "model.safetensors", module=network(1))
    for other in (twin.fit(X, Y, X_pub=X_PUB, y_pub=Y_PUB), pickle.loads(pickle.dumps(clf)), loaded):
        np.testing.assert_array_equal(other.predict_proba(X_TEST), clf.predict_proba(X_TEST))
    assert type(loaded) is type(clf) and loaded.privacy_ == clf.privacy_
    with pytest.raises(ValueError, match="pass module=, a module of the architecture"):
        skmixdp.load(tmp_path / "model.safetensors")


def test_two_classes_have_one_logit():
    module = nn.Linear(6, 2)
    y, y_pub = Y > 0, Y_PUB > 0
    clf = classifier(module=module).fit(X, y, X_pub=X_PUB, y_pub=y_pub)
    assert clf.decision_function(X_TEST).shape == (300,)
    with torch.no_grad():
        expected = torch.softmax(clf.module_(torch.from_numpy(X_TEST)), dim=1).numpy()
    np.testing.assert_allclose(clf.predict_proba(X_TEST), expected, atol=1e-6)


def test_starts():
    """The public start lowers the public loss; the module's own is what it is."""
    still = {"n_steps": 1, "learning_rate": 1e-12}
    own, public = fitted(init="module", **still), fitted(init="public", **still)
    for mine, given in zip(own.module_.parameters(), network().parameters(), strict=True):
        np.testing.assert_allclose(mine.detach(), given.detach(), atol=1e-6)
    assert public.score(X_TEST, Y_TEST) > 0.9 > own.score(X_TEST, Y_TEST) + 0.1
    few = classifier(init="public", **still).fit(X, Y, X_pub=X_PUB[:6], y_pub=Y_PUB[:6])
    assert not same(few.module_, own.module_)
    assert ZerothOrderDPModuleClassifier(network()).init == "public"


@pytest.mark.parametrize("name", ["pazo-m", "auto"])
def test_only_the_parameters_that_are_named_are_trained(name):
    for trainable, trained in (
        (["2"], {"2.weight", "2.bias"}),
        ("0.weight", {"0.weight"}),
        (lambda name: name.endswith("bias"), {"0.bias", "2.bias"}),
    ):
        module = network()
        clf = fitted(name, module, trainable=trainable)
        given = dict(module.named_parameters())
        moved = {
            name for name, value in clf.module_.named_parameters() if not torch.equal(value, given[name])
        }
        assert moved == trained
    module = network()
    module[0].weight.requires_grad_(False)
    assert torch.equal(fitted(name, module).module_[0].weight, module[0].weight)


def test_dropout_is_off():
    module = network(0, nn.Dropout(0.9))
    assert same(fitted(module=module).module_, fitted(module=module).module_)
    np.testing.assert_array_equal(
        fitted(module=module).predict(X_TEST), fitted(module=network()).predict(X_TEST)
    )


def test_batch_normalisation_keeps_its_statistics():
    module = network(0, nn.BatchNorm1d(8))
    with pytest.warns(UserWarning, match=r"batch normalisation in training mode \('1'\)"):
        clf = fitted(module=module)
    assert torch.equal(clf.module_[1].running_mean, torch.zeros(8))
    fitted(module=network(0, nn.BatchNorm1d(8)).eval())  # without a warning


class Tokens(nn.Module):
    """Whole numbers in, images of any shape out."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(20, 5)
        self.head = nn.Linear(5, 3)

    def forward(self, ids):
        return self.head(self.table(ids).mean(dim=1))


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_rows_may_be_token_ids(kind):
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 20, size=(90, 4))
    y = ids[:, 0] % 3
    clf = classifier(module=Tokens(), init="module").fit(
        kind(ids), kind(y), X_pub=kind(ids[:30]), y_pub=kind(y[:30])
    )
    assert clf.predict(kind(ids)).shape == (90,)


def test_rows_may_be_images_and_tensors():
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.ReLU(), nn.Linear(2 * 4 * 4, 3))
    images = np.random.default_rng(0).normal(size=(90, 1, 6, 6))
    y = np.arange(90) % 3
    fits = [
        classifier(module=module).fit(
            kind(images), y, X_pub=(kind(images[:15]), kind(images[15:30])), y_pub=(y[:15], y[15:30])
        )
        for kind in (np.asarray, torch.from_numpy)
    ]
    assert same(fits[0].module_, fits[1].module_)
    np.testing.assert_array_equal(fits[0].predict(images), fits[1].predict(torch.from_numpy(images)))


def test_chunks_change_nothing():
    one, other = fitted(chunk_size=7), fitted(chunk_size=1024)
    for a, b in zip(one.module_.parameters(), other.module_.parameters(), strict=True):
        np.testing.assert_allclose(a.detach(), b.detach(), rtol=1e-3, atol=1e-4)


def test_a_loss_of_ones_own():
    def squared(outputs, y):
        return ((outputs - nn.functional.one_hot(y, 3)) ** 2).sum(dim=1)

    assert fitted(loss=squared, learning_rate=0.05, init="public").score(X_TEST, Y_TEST) > 0.8
    with pytest.raises(ValueError, match="learning_rate='auto' works only with the default loss"):
        fitted(loss=squared)


def test_dpzero_needs_no_public_rows():
    clf = classifier("dpzero", learning_rate=0.05, classes=[0, 1, 2]).fit(X, Y)
    assert clf.privacy_.n_public == 0
    with pytest.warns(PrivacyLeakWarning):
        classifier("dpzero", learning_rate=0.05, n_steps=None).fit(X, Y)
    for name in ("pazo-m", "pazo-p", "pazo-s"):
        with pytest.raises(ValueError, match="use DPZero"):
            classifier(name, learning_rate=0.05, classes=[0, 1, 2]).fit(X, Y)


def test_a_module_that_cannot_be_differentiated_is_trained_without_public_rows():
    class Opaque(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        @torch.no_grad()
        def forward(self, x):
            return self.inner(x)

    clf = classifier("dpzero", Opaque(), learning_rate=0.05, classes=[0, 1, 2], n_steps=3).fit(X, Y)
    assert not same(clf.module_, Opaque())
    with pytest.raises(ValueError, match="fit 'dpzero' with a number"):
        fitted("dpzero", Opaque())


class Guard(torch.autograd.Function):
    """Passes rows on; fails where backpropagation comes through a private one."""

    @staticmethod
    def forward(ctx, x):
        ctx.private = bool((x[:, -1] == PRIVATE).any())
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        assert not ctx.private, "a backward pass came through private rows"
        Guarded.public_backwards += 1
        return gradient


PRIVATE = 7.0


class Guarded(nn.Module):
    """Notes what passes: the last feature says whether a row is private."""

    public_backwards = 0
    private_passes: list = []  # noqa: RUF012

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x):
        if bool((x[:, -1] == PRIVATE).any()):
            Guarded.private_passes.append(torch.is_grad_enabled())
            self.kept = x
        return self.second(
            torch.relu(Guard.apply(self.first(torch.cat([x[:, :-1], 0 * x[:, -1:]], dim=1)) + 0 * x[:, -1:]))
        )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_directions", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_nothing_of_first_order_is_asked_of_private_rows(name, n_directions):
    Guarded.public_backwards, Guarded.private_passes = 0, []
    private, public = X.copy(), X_PUB.copy()
    private[:, -1], public[:, -1] = PRIVATE, 0.0
    tensor = torch.from_numpy(private).requires_grad_(True)
    tensor.register_hook(lambda gradient: pytest.fail("a gradient reached the private rows"))
    clf = classifier(name, Guarded(), n_directions=n_directions, init="public")
    clf.fit(tensor, Y, X_pub=public, y_pub=Y_PUB)
    assert tensor.grad is None
    assert len(Guarded.private_passes) >= clf.n_iter_
    assert not any(Guarded.private_passes)
    assert Guarded.public_backwards > 0
    # Nor does anything that the module kept of them leave with it.
    assert not hasattr(clf.module_, "kept")


def test_a_fit_that_fails_leaves_the_last_one():
    clf = fitted()
    before = clf.predict(X_TEST)
    with pytest.raises(ValueError, match="NaN"):
        clf.fit(np.full_like(X, np.nan), Y, X_pub=X_PUB, y_pub=Y_PUB)
    np.testing.assert_array_equal(clf.predict(X_TEST), before)


class MixesRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 3)

    def forward(self, x):
        return self.linear(x - x.mean(dim=0))


class Counts(MixesRows):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += len(x)
        return self.linear(x)


class Chance(MixesRows):
    def forward(self, x):
        return self.linear(nn.functional.dropout(x, 0.5, training=True))


REFUSED = {
    "not a module": ({"module": np.eye(3)}, TypeError, "module="),
    "no parameters": ({"module": nn.ReLU()}, ValueError, "module has no parameters"),
    "nothing requires gradients": (
        {"module": network().requires_grad_(False)},
        ValueError,
        "no parameter of module requires gradients",
    ),
    "trainable matches nothing": ({"trainable": ["nothing"]}, ValueError, "trainable names 'nothing'"),
    "trainable is half a name": ({"trainable": ["0.wei"]}, ValueError, "trainable names '0.wei'"),
    "trainable is empty": ({"trainable": []}, ValueError, "trainable names nothing"),
    "trainable selects nothing": ({"trainable": lambda name: False}, ValueError, "selects no parameter"),
    "trainable is a number": ({"trainable": 3}, ValueError, "trainable=3"),
    "half precision": ({"module": network().half()}, ValueError, "torch.float16"),
    "rows mixed": ({"module": MixesRows()}, ValueError, "depends on the values of other rows"),
    "batch statistics": (
        {"module": network(0, nn.BatchNorm1d(8, track_running_stats=False)).eval()},
        ValueError,
        "depends on the values of other rows",
    ),
    "chance": ({"module": Chance()}, ValueError, "two passes of the same rows, by chance"),
    "changes its buffers": ({"module": Counts()}, ValueError, "changes its buffers"),
    "too many outputs": ({"module": nn.Linear(6, 5)}, ValueError, r"must have shape \(3, 3\)"),
    "other rows": ({"module": nn.Linear(7, 3)}, ValueError, r"module fails on 3 rows of shape \(6,\)"),
    "mean loss": (
        {"loss": nn.functional.cross_entropy, "learning_rate": 0.1},
        ValueError,
        r"one number for each row, of shape \(3,\)",
    ),
    "loss over the batch": (
        {
            "loss": lambda z, y: nn.functional.cross_entropy(z, y, reduction="none") / len(y),
            "learning_rate": 0.1,
        },
        ValueError,
        "depends on how many rows are in a pass",
    ),
    "loss fails": (
        {"loss": nn.functional.mse_loss, "learning_rate": 0.1},
        ValueError,
        "loss fails on outputs",
    ),
    "loss is no function": ({"loss": "mse"}, ValueError, "loss='mse'"),
    "loss_clip of 0": ({"loss_clip": 0.0}, ValueError, "loss_clip=0.0"),
    "more candidates than rows": (
        {"name": "pazo-s", "n_candidates": 40},
        ValueError,
        "40 disjoint public batches",
    ),
    "convex weight": ({"public_weight": "convex"}, ValueError, "public_weight='convex'"),
    "chunk_size of 0": ({"chunk_size": 0}, ValueError, "chunk_size=0"),
    "chunk_size is True": ({"chunk_size": True}, ValueError, "chunk_size=True"),
    "no such device": ({"device": "abacus"}, ValueError, "device='abacus'"),
    "init of zeros": ({"init": "zeros"}, ValueError, "init='zeros'"),
    "init of coefficients": ({"init": np.zeros((3, 6))}, ValueError, "init is an array of coefficients"),
    "a gradient's algorithm": ({"name": NoisyGD()}, ValueError, "need gradients of private rows"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_modules_and_parameters_are_refused_before_any_noise(case, monkeypatch):
    parameters, error, message = REFUSED[case]
    monkeypatch.setattr(NoiseSource, "add_noise", failing("noise was drawn"))
    clf = classifier(**parameters)
    with pytest.raises(error, match=message) as refused:
        clf.fit(X, Y, X_pub=X_PUB, y_pub=Y_PUB)
    said = str(refused.value)
    if "fails on" not in said:  # where torch's own message ends the sentence
        assert ". " not in said and said.endswith(".")
    assert not hasattr(clf, "module_")


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": np.where(X > 1, np.inf, X)}, "X contains NaN or infinity"),
        ({"X_pub": torch.full((30, 6), torch.nan)}, "X_pub contains NaN or infinity"),
        ({"X": X[:1], "y": Y[:1]}, "a minimum of 2"),
        ({"X": X[:, 0]}, "pass one entry a row"),
        ({"X": [["a"] * 6] * 300}, "X must hold real or whole numbers"),
        ({"X": [[1.0], [1.0, 2.0]], "y": [0, 1]}, "as many in each row"),
        ({"y": Y[:-1]}, "y has 299 labels"),
        ({"y": np.where(Y == 2, 5, Y)}, "is not one of the classes"),
        ({"y_pub": None}, "y_pub=None must be given too"),
        ({"X_pub": None}, "X_pub=None must be given too"),
        ({"X_pub": X_PUB[:, :5]}, r"X_pub has rows of shape \(5,\)"),
    ],
)
def test_bad_rows_are_refused_before_any_noise(given, message):
    clf = classifier("dpzero", classes=[0, 1, 2])
    with pytest.raises(ValueError, match=message) as refused:
        clf.fit(**({"X": X, "y": Y, "X_pub": X_PUB, "y_pub": Y_PUB} | given))
    assert ". " not in str(refused.value)
    assert not hasattr(clf, "classes_")


def test_weights_are_refused_and_doubtful_input_is_warned_of():
    with pytest.raises(TypeError, match="sample_weight"):
        classifier().fit(X, Y, X_pub=X_PUB, y_pub=Y_PUB, sample_weight=np.ones(300))
    with pytest.warns(UserWarning, match="not below 1/n"):
        fitted(delta=0.01)
    with pytest.warns(UserWarning, match="no public row has a label in"):
        classifier(classes=[0, 1, 2]).fit(X, Y, X_pub=X_PUB[Y_PUB > 0], y_pub=Y_PUB[Y_PUB > 0])


def test_rows_to_predict_are_checked():
    clf = fitted()
    with pytest.raises(ValueError, match="NaN"):
        clf.predict(np.full((2, 6), np.nan))


def test_a_fit_is_charged_once_and_private_rows_pass_once_before(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("pixels", epsilon=1.0, delta=1e-4)
    passes = []
    module = network()
    module[0].register_forward_pre_hook(lambda part, given: passes.append(are_private(given[0])))
    clf = fitted(module=module, epsilon=0.8, ledger=ledger, random_state=None)
    assert 0.7 < clf.privacy_.dataset_spent <= 0.8 + 1e-6
    before = sum(passes)
    assert before == 1 + 2 * clf.n_iter_
    with pytest.raises(BudgetExceededError):
        fitted(module=module, epsilon=0.8, ledger=ledger, random_state=None)
    assert sum(passes) == before + 1


def test_without_torch_one_sentence_names_the_extra(monkeypatch):
    monkeypatch.delattr(skmixdp._torch, "modules")
    monkeypatch.setitem(sys.modules, dotted_path("modules"), None)
    with pytest.raises(ImportError, match=r"install skmixdp\[features\]"):
        fitted()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_modules_and_rows_on_a_device():
    clf = fitted(device="cuda", init="public")
    assert next(clf.module_.parameters()).is_cuda
    assert clf.score(X_TEST, Y_TEST) > 0.8
    there = classifier(module=network().cuda(), init="public").fit(
        torch.from_numpy(X).cuda(),
        torch.from_numpy(Y).cuda(),
        X_pub=torch.from_numpy(X_PUB).cuda(),
        y_pub=Y_PUB,
    )
    assert there.score(X_TEST, Y_TEST) > 0.8


COLUMNS = list("abcdef")


class TestDataFrames:
    private, public = pd.DataFrame(X, columns=COLUMNS), pd.DataFrame(X_PUB, columns=COLUMNS)

    def test_public_columns_in_another_order_are_refused(self):
        with pytest.raises(ValueError, match="X_pub has the columns"):
            classifier().fit(self.private, Y, X_pub=self.public[COLUMNS[::-1]], y_pub=Y_PUB)

    def test_predictions_need_the_columns_of_the_last_fit_also_after_saving(self, tmp_path):
        clf = classifier().fit(self.private, Y, X_pub=self.public, y_pub=Y_PUB)
        clf.save(tmp_path / "model.safetensors")
        for each in (clf, skmixdp.load(tmp_path / "model.safetensors", module=network())):
            assert list(each.feature_names_in_) == COLUMNS
            assert np.array_equal(each.predict(self.private), each.predict(X))
            with pytest.raises(ValueError, match="feature names should match"):
                each.predict(self.private[COLUMNS[::-1]])
        clf.fit(X, Y, X_pub=X_PUB, y_pub=Y_PUB)
        assert not hasattr(clf, "feature_names_in_") and not hasattr(clf, "n_features_in_")


def test_rows_in_the_other_byte_order_are_the_same_rows():
    swapped = [each.astype(each.dtype.newbyteorder("S")) for each in (X, Y, X_PUB, Y_PUB)]
    clf = classifier().fit(swapped[0], swapped[1], X_pub=swapped[2], y_pub=swapped[3])
    assert np.array_equal(clf.predict_proba(swapped[0]), fitted().predict_proba(X))


def test_types_of_columns_decide_nothing():
    """A frame is read as float64, as if one of its integers were a fraction."""
    frame = pd.DataFrame(np.random.default_rng(0).integers(-3, 4, size=(40, 2)))
    labels = np.arange(40) % 2

    def trained(X):
        torch.manual_seed(0)
        clf = FirstOrderDPModuleClassifier(
            torch.nn.Linear(2, 2), init="module", learning_rate=0.1, n_steps=2, random_state=0, classes=[0, 1]
        )
        return clf.fit(X, labels).module_.weight.detach().numpy().tobytes()

    assert trained(frame) == trained(frame.astype("f4")) == trained(frame.astype(object))
