"""Read and write the files of models.

A model is a fitted estimator, a pipeline if it was trained on raw tables, or an :class:`EncodedModel` if it
was trained on rows that ``extract`` wrote. A file whose name ends in ``.safetensors`` holds numbers and text
alone. Any other is a pickle by joblib. Nothing else in the command line unpickles.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import joblib

from .._files.formats import reading
from .._utils.models import Model
from ..estimators._saving.saving import load_with_note, model_bytes
from .messages import InputError


@dataclass(frozen=True)
class EncodedModel:
    """A fitted estimator, and how its rows were made: "images" has the flags and report of ``extract``."""

    head: Any
    encoder: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        """All other attributes are those of the estimator, such as ``classes_`` and ``privacy_``."""
        if name.startswith("__") or name in ("head", "encoder"):
            raise AttributeError(name)
        return getattr(self.head, name)


def unpacked(model: Any) -> tuple[Any, dict[str, Any] | None]:
    """The estimator in a model, and how ``extract`` made its rows, if it did."""
    return (model.head, model.encoder["images"]) if isinstance(model, EncodedModel) else (model, None)


#: Ending of files without pickles.
PLAIN = ".safetensors"


def save_model(model: "Model | EncodedModel", file: BinaryIO, ending: str) -> None:
    """Write a model to an open file, whose format follows from the ending."""
    if ending != PLAIN:
        joblib.dump(model, file)
        return
    head, encoder = (model.head, model.encoder) if isinstance(model, EncodedModel) else (model, None)
    file.write(model_bytes(head, encoder))


def load_model(path: Path) -> Any:
    """The model in a file. Unless its name ends in ``.safetensors``, reading it can run code."""
    where = f"MODEL {path}"
    if path.suffix == PLAIN:
        with reading(where):
            path.open("rb").close()
        try:
            head, encoder = load_with_note(path)
        except ValueError as error:
            raise InputError(f"MODEL {error}") from None  # the text begins with the path
        return head if encoder is None else EncodedModel(head, encoder)
    with reading(where):
        file = path.open("rb")
    with file:
        try:
            return joblib.load(file)
        # A damaged or foreign pickle may raise any error.
        except Exception as error:
            raise InputError(
                f"{where} is not a model saved by `fit` or with joblib ({type(error).__name__}); give the "
                "file that `fit --out` wrote, or fit again."
            ) from None  # its text may quote the file, which may hold private rows


def card_page(model: "Model | EncodedModel") -> str:
    """The HTML page on a model: its card."""
    from ..inspection import model_card  # imported here, since few commands need it

    if isinstance(model, EncodedModel):
        return model_card(model.head, description="Its rows are features of images, by `extract`.").to_html()
    return model_card(model).to_html()
