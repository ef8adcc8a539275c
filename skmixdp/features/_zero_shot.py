"""A starting head from the names of the classes."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .._utils.validation import FLAG, POSITIVE, check_params, listed

Array = NDArray[Any]

#: Candidates of ``beta="auto"``: four for each factor of ten, up to the scale of CLIP.
_SCALES = np.logspace(0, 2, 9)

#: Default scale without public rows to choose one; it suits sentence encoders.
_USUAL_SCALE = 5.0


@dataclass(eq=False, repr=False)
class ZeroShotHead(BaseEstimator):  # type: ignore[misc]
    """Start of a classifier (``init``) from the names of the classes.

    The row of each class is ``beta`` times the unit encoding of its name, so that the head's
    logits are ``beta`` times cosines. With public rows, a fit to them starts from this head.

    Parameters
    ----------
    class_names : sequence of str, or mapping
        Names of the classes. A mapping goes from each label to its name. A sequence is matched by
        name if the labels are the names, and by position if the labels are 0, 1, ...
    templates : str or sequence of str, default="{}"
        Texts with ``{}`` in place of the name, such as ``"a photo of a {}."``. A class has the
        mean of its unit encodings, scaled to unit length again.
    encoder : object or None, default=None
        Has ``encode_texts(list of str) -> (n, n_features)``, in the space of the rows:
        :class:`OpenClipFeatures`, :class:`SentenceFeatures` or one of your own.
    embeddings : array-like of shape (n_classes, n_features) or None, default=None
        Encodings of the names, in the order of ``class_names``, instead of an encoder.
    beta : float or "auto", default="auto"
        Scale of the logits. 100 is that of CLIP, and far too large for encoders that were not
        trained with it. ``"auto"`` tries nine values from 1 to 100, by few-shot fits on either half
        of the public rows. It takes the value that classifies most of the other half correctly.
        Without public rows, the value is 5, which suits sentence encoders.
    few_shot : bool, default=True
        Whether to fit the public rows, with the penalty (strength ``public_l2``) centred at the
        names' head. False, or no public rows, leaves the names' head as it is.

    Notes
    -----
    *Guarantee*: names, encodings and public rows are public, and nothing else is used.

    The head acts on rows as the classifier sees them, centred by the public mean and of unit
    length. Centring removes the bias that names have towards the mean row. Intercepts are zero.

    With ``center="public"`` of an algorithm, this start is also the centre of its regulariser (of
    strength ``l2``, by default 0).

    References
    ----------
    Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix), section 3.3.
    Radford et al. 2021, "Learning Transferable Visual Models From Natural Language
    Supervision" (CLIP), section 3.1.4, for averages over templates.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.features import ZeroShotHead
    >>> names = np.eye(3, 8)  # in practice: encoder=OpenClipFeatures()
    >>> X, y = make_blobs(300, centers=names, cluster_std=0.3, random_state=0)
    >>> head = ZeroShotHead(["cat", "dog", "owl"], embeddings=names, beta=5)
    >>> clf = MixedDPLogisticRegression("noisy-gd", classes=[0, 1, 2], init=head).fit(X, y)
    >>> bool(clf.score(X, y) > 0.9)
    True
    """

    class_names: Any
    _: KW_ONLY
    templates: Any = "{}"
    encoder: Any = None
    embeddings: Any = None
    beta: Any = "auto"
    few_shot: bool = True

    def _directions(self, classes: object) -> Array:
        """The unit encodings (n_classes, n_features) of the names of ``classes``, in this order."""
        labels = np.asarray(classes).tolist()
        order = self._positions(labels)
        if (self.encoder is None) == (self.embeddings is None):
            number = "neither" if self.encoder is None else "both"
            raise ValueError(
                f"ZeroShotHead has {number} of encoder and embeddings; pass an encoder with encode_texts, or "
                "the encodings of class_names as embeddings."
            )
        if self.embeddings is not None:
            table = np.asarray(self.embeddings, dtype=np.float64)
            if table.ndim != 2 or len(table) != len(order):
                raise ValueError(
                    f"embeddings of shape {table.shape} must have one row for each of the {len(order)} names "
                    "in class_names."
                )
            return _unit_rows(table, "embeddings")[order]
        names = self._names()
        encode = getattr(self.encoder, "encode_texts", None)
        if not callable(encode):
            raise TypeError(
                f"encoder={self.encoder!r} has no method encode_texts; pass OpenClipFeatures, "
                "SentenceFeatures or an object that has one."
            )
        total: Any = 0.0
        for template in self._checked_templates():
            texts = [template.replace("{}", names[place]) for place in order]
            total = total + _unit_rows(np.asarray(encode(texts), dtype=np.float64), "encode_texts(...)")
        return _unit_rows(total, "the mean over templates")

    def start(self, classes: object, public: Any, widen: Callable[[Array], Array]) -> Array:
        """Return the head before the first private step; estimators call this.

        Parameters
        ----------
        classes : array of shape (n_classes,)
            Sorted labels.
        public : PublicData
            Public rows as the head sees them; there may be none.
        widen : callable
            Turns coefficients (k, n_features) into a head (k, d_in) with intercepts. It refuses a wrong
            number of features.

        Returns
        -------
        array of shape (k, d_in)

        Raises
        ------
        ValueError, TypeError
            If the names do not match the classes, or a parameter cannot be used.
        """
        check_params(self, {"few_shot": (FLAG,), "beta": (POSITIVE, "auto")}, named=True)
        rows = self._directions(classes)
        # Two classes have one output: the logit of the second minus that of the first.
        text = widen(rows[1:] - rows[:1] if len(rows) == 2 else rows)
        text = self._scale(text, public) * text
        if not self.few_shot or public.n_rows == 0:
            return np.asarray(text)
        return np.asarray(public.fit(public.l2, text))

    def _scale(self, head: Array, public: Any) -> float:
        """The value of ``beta``, chosen on the public rows if it is ``"auto"``."""
        if self.beta == "auto":
            if public.n_rows < 2:
                return _USUAL_SCALE
            # Loss alone would choose a larger ``beta``, and training would have to undo the overconfidence.
            # On BANKING77 loss chooses 15, but 5 is more accurate before and after training.
            return float(max(_SCALES, key=lambda scale: _held_out_score(scale * head, public)))
        return float(self.beta)

    def _names(self) -> list[str]:
        if isinstance(self.class_names, str):
            raise TypeError(f"class_names={self.class_names!r} is one str; pass a list of names.")
        names = list(self.class_names.values() if isinstance(self.class_names, Mapping) else self.class_names)
        for name in names:
            if not isinstance(name, str) or not name:
                raise TypeError(f"class_names holds {name!r}, which is not a name; pass texts (str).")
        return [str(name) for name in names]  # strings of NumPy print differently

    def _positions(self, labels: list[Any]) -> list[int]:
        """Position in ``class_names`` of each label."""
        names = self._names()
        if isinstance(self.class_names, Mapping):
            keys = np.asarray(list(self.class_names)).tolist()
        elif sorted(map(str, labels)) == sorted(names) and len(set(names)) == len(names):
            keys = names
            labels = [str(label) for label in labels]
        elif labels == list(range(len(names))):
            keys = labels
        else:
            keys = []
        if sorted(map(repr, keys)) != sorted(map(repr, labels)):
            raise ValueError(
                f"class_names holds {len(names)} names, {listed(names, 4)}, that do not match the "
                f"{len(labels)} classes {listed(labels, 4)}; pass a dict from each class to its name."
            )
        return [keys.index(label) for label in labels]

    def _checked_templates(self) -> list[str]:
        templates = [self.templates] if isinstance(self.templates, str) else list(self.templates)
        if not templates or any(not isinstance(text, str) or "{}" not in text for text in templates):
            raise ValueError(
                f"templates={self.templates!r} must be one or several texts with {{}} where the name goes."
            )
        return templates


def _held_out_score(head: Array, public: Any) -> tuple[int, float]:
    """Number of correct predictions on public rows, each by a fit to the other half, and minus the loss."""
    right, loss = 0, 0.0
    for fitted, left_out in (public.halves, public.halves[::-1]):
        logits = left_out.X @ fitted.fit(fitted.l2, head).T
        guessed = logits.argmax(axis=1) if logits.shape[1] > 1 else logits[:, 0] > 0
        right += int(np.sum(guessed == left_out.labels))
        loss += float(public.loss.values(logits, left_out.y).sum())
    return right, -loss


def _unit_rows(table: Array, name: str) -> Array:
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    if not np.all(np.isfinite(table)) or not np.all(lengths > 0):
        raise ValueError(f"{name} must hold finite rows that are not zero; check the encoder.")
    return np.asarray(table / lengths)
