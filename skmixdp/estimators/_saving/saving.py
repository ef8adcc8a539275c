"""Fitted estimators as safetensors files, without pickle.

A file is in the safetensors format: arrays, and a text for each of a few keys. One of these texts is the
JSON of the parameters, the fitted attributes and the privacy report. Reading a file runs no code from it.
"""

import hashlib
import json
import platform
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from ..._utils.files import refuse_special, written_whole
from ..._utils.process import warn
from ..._utils.validation import one_line
from ..._version import __version__
from .coding import FITTED, HEADS, Decoder, Encoder, NotEncodableError, is_known, restore_estimator

Array = NDArray[Any]

#: Marks a safetensors file as a model of this library.
_FORMAT = "skmixdp-model"

#: Format version. It changes whenever an older version of the library could misread a file.
_VERSION = 1

#: What a file may hold: a head, or a pipeline that ends in one.
ESTIMATORS = (*HEADS, "PrivatePipeline")

#: Errors from reading a damaged text.
_DAMAGE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


class SavingMixin:
    """Mixin that writes a fitted estimator or pipeline to a file."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to a file that :func:`skmixdp.load` reads, without pickle.

        The file is in the safetensors format. It holds the parameters, the fitted attributes and the privacy
        report. An existing file is replaced.

        Parameters
        ----------
        path : str or path
            The file; the usual ending is ``.safetensors``.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If a step or a parameter is a function or an object of your own class. Also for a subclass of your
            own. The error names it.
        OSError
            If the file cannot be written.

        Notes
        -----
        *Guarantee*: the file holds what is public or was released, and nothing else of the private rows, if
        no step learned from them without a budget. The ledger is kept as the absolute path of its file.
        """
        content = model_bytes(self)
        with written_whole(Path(path)) as file:
            file.write(content)


def model_bytes(estimator: BaseEstimator, note: object = None) -> bytes:
    """The content of the file of a fitted estimator; ``note`` is JSON that is kept with it."""
    check_is_fitted(estimator)
    name = type(estimator).__name__
    if name not in ESTIMATORS or not is_known(estimator, FITTED):
        raise TypeError(
            f"save writes {', '.join(ESTIMATORS)}, and this is a {type(estimator).__qualname__}, which load "
            "would not know; keep it with joblib.dump."
        )
    encoder = Encoder()
    try:
        parts = encoder.estimator(estimator)
    except NotEncodableError as error:
        remedy = (
            "set it to a plain value with set_params before saving, since predictions do not depend on it"
        )
        if name == "PrivatePipeline":
            remedy = "save the steps apart"
        raise TypeError(
            f"{error}, which a saved model cannot hold; {remedy}, or keep the estimator with joblib.dump."
        ) from None
    written_with = {  # for people who read the file, and for steps of scikit-learn
        "skmixdp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
    model = {"class": name, **parts, "written_with": written_with, "note": note}
    text = json.dumps(model, sort_keys=True, allow_nan=False)
    return to_bytes(
        encoder.arrays,
        {
            "format": _FORMAT,
            "format_version": str(_VERSION),
            "model": text,
            "sha256": _checksum(text, encoder.arrays),
        },
    )


def load(path: str | PathLike[str], *, module: Any = None) -> Any:
    """Read a fitted estimator that its method ``save`` wrote.

    No code is loaded or run: a file holds numbers and text. Its predictions are those of the estimator that
    was saved, bit for bit on the same machine.

    Parameters
    ----------
    path : str or path
        The file.
    module : torch.nn.Module or None, default=None
        For classifiers with a module only, which need it: a module of the architecture that was trained. The
        file holds the trained parameters and buffers.

    Returns
    -------
    estimator
        The fitted estimator, with its parameters and its report ``privacy_``. Its ledger is opened when it is
        charged next; predicting needs no ledger.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is not a saved model, is damaged or was altered, or needs a newer version. Also if
        ``module`` is missing or does not match.

    Notes
    -----
    Everything is checked before an estimator is returned: the format and its version, a SHA-256 checksum of
    the content, a list of classes that a file may name, and types and shapes of all values. The checksum
    finds damage. It is no signature: whoever can write the file can also write a matching checksum, and a
    false report with it.

    Examples
    --------
    >>> import os, tempfile
    >>> import skmixdp
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = skmixdp.MixedDPLogisticRegression().fit(X[100:], y[100:], X_pub=X[:100], y_pub=y[:100])
    >>> path = os.path.join(tempfile.mkdtemp(), "digits.safetensors")
    >>> clf.save(path)
    >>> served = skmixdp.load(path)
    >>> bool((served.predict_proba(X) == clf.predict_proba(X)).all()), served.privacy_ == clf.privacy_
    (True, True)
    """
    return load_with_note(Path(path), module)[0]


def load_with_note(path: Path, module: Any = None) -> tuple[Any, Any]:
    """As :func:`load`, with the note that :func:`model_bytes` was given."""
    name, parameters, attributes, note = _read(path)
    if (name.endswith("DPModuleClassifier")) != (module is not None):
        raise ValueError(
            f"{path} holds a {name}; pass module=, a module of the architecture that was trained."
            if module is None
            else f"{path} holds a {name}, which has no module; leave out module."
        )
    state = attributes.pop("module_", None)
    if module is not None:
        parameters["module"] = module
    try:
        estimator = restore_estimator(name, parameters, attributes)
    except _DAMAGE as error:
        raise _refusal(path, error) from error
    if module is not None:
        estimator._set_module_state(state)
    return estimator, note


def _read(path: Path) -> tuple[str, dict[str, Any], dict[str, Any], Any]:
    """Name of the class, parameters, attributes and note of a file."""
    refuse_special(path)
    try:
        with safe_open(path, framework="numpy") as file:
            texts = file.metadata() or {}
            if texts.get("format") != _FORMAT:
                raise ValueError(
                    f"{path} is a safetensors file of something else; pass a file that save wrote."
                )
            version = texts.get("format_version")
            if version != str(_VERSION):
                raise ValueError(
                    f"{path} has the format version {version!r}, and this skmixdp reads {_VERSION}; use the "
                    "version of skmixdp that wrote it."
                )
            # Copies, so that the model owns its memory as after a fit.
            arrays = {key: np.array(file.get_tensor(key)) for key in file.keys()}  # noqa: SIM118 - no mapping
    except SafetensorError as error:
        raise ValueError(
            f"{path} is not a saved model, or is damaged ({one_line(str(error))}); pass a file that save "
            "wrote, or restore it from a copy."
        ) from error
    text = texts.get("model", "")
    if texts.get("sha256") != _checksum(text, arrays):
        raise ValueError(
            f"{path} is damaged or was altered, since its checksum does not match; restore it from a copy."
        )
    try:
        model, decoder = json.loads(text), Decoder(arrays, path.stat().st_size)
        if model["class"] not in ESTIMATORS:
            raise ValueError(f"the estimator {model['class']!r} is unknown")
        parts = decoder.named(model["parameters"]), decoder.named(model["attributes"])
        written = model["written_with"]["scikit-learn"]
        if decoder.foreign and written != sklearn.__version__:
            warn(
                InconsistentVersionWarning(
                    estimator_name=", ".join(sorted(set(decoder.foreign))),
                    current_sklearn_version=sklearn.__version__,
                    original_sklearn_version=written,
                )
            )
        return model["class"], *parts, model.get("note")
    except _DAMAGE as error:
        raise _refusal(path, error) from error


def _refusal(path: Path, error: Exception) -> ValueError:
    reason = one_line(str(error)).removesuffix(".")
    return ValueError(
        f"{path} cannot be read as a model of this version of skmixdp ({type(error).__name__}: {reason}); "
        "use the version that wrote it, or restore the file from a copy."
    )


def _checksum(text: str, arrays: Mapping[str, Array]) -> str:
    """SHA-256 of a text and of named arrays, with their types and shapes."""
    digest = hashlib.sha256(json.dumps(text).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
