"""Networks of sentence-transformers as encoders."""

import os
from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from .loading import check_row_wise, loading, weights_hash

#: Key of the lengths of the texts in a batch, if the batch has no mask.
_LENGTHS = "lengths"


def load(model: str | os.PathLike[str]) -> "SentenceEncoder":
    """The encoder that these parameters of ``SentenceFeatures`` describe."""
    name = os.fspath(model)
    remedy = (
        "use the name of a model that sentence-transformers knows, or, where there is no network, the folder "
        "of a saved one"
    )
    with loading(f"model={name!r} cannot be loaded", remedy):
        module = SentenceTransformer(name, device="cpu")
    check_row_wise(module, name)
    return SentenceEncoder(module.eval(), name)


class SentenceEncoder:
    """A sentence-transformers network as an encoder."""

    def __init__(self, module: Any, name: str) -> None:
        self.module = module
        self.preparation = TextPreparation(module.preprocess)
        with torch.inference_mode():
            self.n_outputs = int(self.forward(self.preparation.stack(["a"])).shape[1])
        self.description: dict[str, Any] = {
            "library": "sentence-transformers",
            "model": name,
            "weights": {"origin": name, "sha256": weights_hash(module)},
            "preprocessing": f"{type(module.tokenizer).__name__}, at most {module.max_seq_length} tokens",
        }

    def forward(self, batch: Any) -> Tensor:
        inputs = dict(batch)
        if _LENGTHS in inputs:
            inputs = _unpadded(**inputs)
        rows: Tensor = self.module(inputs)["sentence_embedding"]
        return torch.nn.functional.normalize(rows, dim=1)


class TextPreparation:
    """The model's own tokenizer; the texts of a batch are padded to the longest, and masked."""

    def __init__(self, preprocess: Any) -> None:
        self._preprocess = preprocess

    def one(self, item: Any) -> Any:
        return item

    def stack(self, prepared: Sequence[Any]) -> Any:
        batch = self._preprocess(list(prepared))
        if "offsets" in batch:
            return _padded(batch["input_ids"], batch["offsets"])
        return {name: value for name, value in batch.items() if isinstance(value, Tensor)}


def _padded(input_ids: Tensor, offsets: Tensor) -> dict[str, Tensor]:
    """Consecutive tokens of static embeddings, as one row for each text.

    Only rows can be split into smaller batches.
    """
    texts = list(torch.tensor_split(input_ids, offsets[1:]))
    lengths = torch.tensor([len(text) for text in texts])
    return {"input_ids": torch.nn.utils.rnn.pad_sequence(texts, batch_first=True), _LENGTHS: lengths}


def _unpadded(input_ids: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """The inverse of :func:`_padded`, for some of its rows."""
    is_token = torch.arange(input_ids.shape[1], device=input_ids.device) < lengths[:, None]
    return {"input_ids": input_ids[is_token], "offsets": lengths.cumsum(0) - lengths}
