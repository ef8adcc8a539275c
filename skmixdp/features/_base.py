"""The base class of all feature transformers, and a cache of the encoders that they load."""

import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from threading import Lock
from typing import Any, ClassVar

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from .._utils.process import own_state, warn
from .._utils.validation import COUNT, FLAG, Allowed, Kind, check_params, how_to_install, whole_from
from ._extraction import Encoder, Extraction, Settings, extract
from ._inputs import ItemKind, Items, as_items

#: Number of encoders to keep: one of images and one of texts.
_KEPT = 2
_loaded: OrderedDict[str, Encoder] = OrderedDict()
_lock = Lock()


def is_path(value: object) -> bool:
    """Whether a value may be the path of a file or folder."""
    return isinstance(value, (str, os.PathLike))


@dataclass(eq=False, repr=False)
class FrozenFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of transformers from images or texts to the rows of a frozen network.

    A subclass sets its backend, its kind of items and the parameters that choose the network. Its
    ``__init__`` takes these and the parameters below, and nothing else.

    Parameters
    ----------
    device : str, default="auto"
        Where to compute: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...; ``"auto"`` is the GPU if
        there is one.
    batch_size : "auto" or int, default="auto"
        Items in a forward pass. It is halved when memory runs out. ``"auto"`` is 256 on a
        GPU and 32 elsewhere.
    n_workers : "auto" or int, default="auto"
        Processes that read and prepare items. ``"auto"`` is one for each available core, up to
        16, on a GPU, and 0 (this process) elsewhere. Images in one array need none.
    amp : "auto", bool, "bfloat16" or "float16", default="auto"
        Automatic mixed precision; ``"auto"`` is bfloat16 on a GPU (float16 on one without it)
        and none elsewhere.
    cache : path-like or None, default=None
        Folder that stores rows, under the content of the item, the weights, the preprocessing,
        the precision and the ``dtype``. An interrupted run resumes where it stopped.
    dtype : {"float32", "float16"}, default="float32"
        Precision to which rows are rounded and in which they are stored. They are returned as
        float32.
    on_error : {"raise", "skip"}, default="raise"
        What happens when an item cannot be read.
    verbose : int, default=0
        1 shows a progress bar at once, in any output. 0 shows it on terminals after 2 seconds.
    """

    _backend: ClassVar[str]
    _extra: ClassVar[str] = "features"
    _kind: ClassVar[ItemKind] = "image"
    #: The parameters that choose the network; the backend's ``load`` takes them by name.
    _choosing: ClassVar[tuple[str, ...]] = ()

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "device": (Kind("a str such as 'auto', 'cpu' or 'cuda'", lambda value: isinstance(value, str)),),
        "batch_size": ("auto", COUNT),
        "n_workers": ("auto", whole_from(0)),
        "amp": ("auto", FLAG, "bfloat16", "float16"),
        "cache": (Kind("the path of a folder", is_path), None),
        "dtype": ("float32", "float16"),
        "on_error": ("raise", "skip"),
    }

    _: KW_ONLY
    device: str = "auto"
    batch_size: Any = "auto"
    n_workers: Any = "auto"
    amp: Any = "auto"
    cache: Any = None
    dtype: Any = "float32"
    on_error: Any = "raise"
    verbose: int = 0

    def fit(self, X: object = None, y: object = None) -> "FrozenFeatures":
        """Check the parameters and load the network; nothing is learned.

        Parameters
        ----------
        X : ignored
        y : ignored

        Returns
        -------
        self : FrozenFeatures
            This object, with ``report_``: model, origin and SHA-256 of the weights, and
            preprocessing.

        Raises
        ------
        ValueError, TypeError
            For parameters that cannot be used.
        ImportError
            If a package is missing.
        """
        self._check()
        self.report_ = dict(self._encoder().description)
        return self

    def transform(self, X: object) -> NDArray[np.float32]:
        """Return one row for each item.

        Parameters
        ----------
        X : sequence of n_samples items
            Images: paths, PIL images or uint8 arrays in a list, an array of paths, a uint8
            array (n, height, width) or (n, height, width, channels), or a torch Dataset of
            images or of tuples that start with one. Images are turned as their EXIF orientation
            says. Texts: a list or array of str.

        Returns
        -------
        array of shape (n_samples, n_features_out), float32
            With ``on_error="skip"``, rows of items that could not be read are NaN, and a warning
            names the items. :meth:`extract` leaves them out.

        Raises
        ------
        ValueError, TypeError
            If an item cannot be used; the message names it.
        MemoryError
            If the device has too little memory for one item.

        Notes
        -----
        *Guarantee*: a row depends on its own item and on the weights alone, so rows of private
        items may be passed to a private head as they are.
        """
        result = self.extract(X)
        if not result.skipped:
            return result.features
        n = len(result.features) + len(result.skipped)
        rows = np.full((n, result.features.shape[1]), np.nan, dtype=np.float32)
        rows[result.index] = result.features
        names = ", ".join(item.name for item in result.skipped[:8])
        warn(
            f"{len(result.skipped)} of {n} items could not be read and have rows of NaN: {names}"
            f"{', ...' if len(result.skipped) > 8 else ''}; leave them out, or use extract."
        )
        return rows

    def extract(self, X: object) -> Extraction:
        """Return the rows of the items that could be read, with their positions and a report.

        Parameters
        ----------
        X : sequence of items
            As for :meth:`transform`.

        Returns
        -------
        Extraction
            ``features``, ``index``, ``skipped``, ``n_computed`` and ``report``.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As for :meth:`transform`.
        """
        with own_state():
            self._check()
            return self._put_through(self._encoder(), as_items(X, self._kind))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the features: the class's name in lower case, and a number.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        array of str
        """
        name = type(self).__name__.lower()
        return np.array([f"{name}{i}" for i in range(self._encoder().n_outputs)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = self._kind == "image"
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _encoder(self, **changed: object) -> Encoder:
        """The encoder of the parameters that choose the network; ``changed`` overrides some of them."""
        parameters = self.get_params(deep=False)
        settings = {name: parameters[name] for name in self._choosing}
        return load_encoder(self._backend, self._extra, {**settings, **changed})

    def _put_through(self, encoder: Encoder, items: Items) -> Extraction:
        loop = load_backend("loop", self._extra)
        return extract(items, encoder, loop.run, self._settings(), self)

    def _settings(self) -> Settings:
        """The parameters of the computation, with the values of ``"auto"`` on this machine."""
        loop = load_backend("loop", self._extra)
        device = loop.resolve_device(self.device)
        gpu = device.startswith("cuda")
        size = (256 if gpu else 32) if self.batch_size == "auto" else int(self.batch_size)
        workers = (
            (min(16, joblib.cpu_count()) if gpu else 0) if self.n_workers == "auto" else int(self.n_workers)
        )
        return Settings(device, loop.resolve_precision(self.amp, device), size, workers)

    def _check(self) -> None:
        check_params(self, self._allowed)


def load_backend(name: str, extra: str) -> Any:
    """A module of ``backends``; if a package that it imports is missing, the error names it."""
    try:
        return import_module(f".backends.{name}", __package__)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"features need the package {error.name}, which is not installed; {how_to_install(extra)}."
        ) from error


def load_encoder(backend: str, extra: str, settings: Mapping[str, Any]) -> Encoder:
    """A cached encoder, or a new one of the module ``backend`` with these settings."""
    module = load_backend(backend, extra)
    # A changed file needs a new encoder.
    key = repr((backend, sorted(settings.items()), [_size_and_time(value) for value in settings.values()]))
    with _lock:
        if key not in _loaded:
            while len(_loaded) >= _KEPT:
                _loaded.popitem(last=False)
            _loaded[key] = module.load(**settings)
        _loaded.move_to_end(key)
        return _loaded[key]


def _size_and_time(value: object) -> tuple[int, int] | None:
    if isinstance(value, (str, os.PathLike)):
        try:
            status = os.stat(value)  # noqa: PTH116
        except (OSError, ValueError):
            return None
        return status.st_size, status.st_mtime_ns
    return None
