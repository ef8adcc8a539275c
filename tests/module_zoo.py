"""Modules that treat each row by itself, and modules that only seem to."""

from tests.module_problems import torch

nn = torch.nn


class Wrapped(nn.Module):
    """Two layers, with something in between that a subclass says."""

    def __init__(self, d=6, hidden=8, k=3):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(d, hidden), nn.Linear(hidden, k)

    def between(self, x, h):
        return h

    def forward(self, x):
        return self.second(self.between(x, self.first(x).relu()))


class Capacity(Wrapped):
    """A mixture of experts as in Switch: rows beyond the capacity of their expert are dropped."""

    def between(self, x, h):
        chosen = (x[:, 0] > 0).long()
        place = chosen.cumsum(0) * chosen
        return h * (place <= max(4, len(x) // 2)).to(h.dtype)[:, None]


class LearnedRouter(Wrapped):
    """The same with four experts, a router that is trained, and room for all rows but a few."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)

    def between(self, x, h):
        chosen = nn.functional.one_hot(self.router(x).argmax(dim=1), 4)
        place = (chosen.cumsum(0) * chosen).sum(dim=1)
        return h * (place <= 0.9 * len(x)).to(h.dtype)[:, None]


class ExpertChoice(Wrapped):
    """An expert that takes the rows with the highest scores."""

    def between(self, x, h):
        kept = torch.zeros(len(x), 1, dtype=h.dtype)
        kept[x.sum(dim=1).topk(max(1, len(x) // 2)).indices] = 1
        return h * kept


class DynamicScale(Wrapped):
    """Activations on 255 levels whose scale is that of the largest entry, as in dynamic quantisation."""

    def between(self, x, h):
        scale = h.abs().amax().clamp(min=1e-12) / 127
        return (h / scale).round() * scale


class RescuedOverflow(Wrapped):
    """All rows are scaled down where one is huge."""

    def between(self, x, h):
        return h / 8 if float(x.abs().max()) > 1e20 else h


class FiniteOrNothing(Wrapped):
    def between(self, x, h):
        return h if bool(torch.isfinite(x).all()) else torch.zeros_like(h)


class SmallestEntry(Wrapped):
    """All rows change where one is tiny."""

    def between(self, x, h):
        return h / 8 if bool(((x != 0) & (x.abs() < 1e-36)).any()) else h


class Median(Wrapped):
    def between(self, x, h):
        return h - h.median(dim=0).values


class LargePassesOnly(Wrapped):
    def between(self, x, h):
        return h - h.mean(dim=0) if len(x) > 64 else h


class SwitchedOff(Wrapped):
    """Mixing with a weight that is 0 until it is trained."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def between(self, x, h):
        return h + self.weight * h.mean(dim=0)


class Neighbour(Wrapped):
    def between(self, x, h):
        return h + 1e-4 * h.roll(1, 0)


class RowsAsSequence(Wrapped):
    """Attention without ``batch_first``: a pass is taken for one sequence."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def between(self, x, h):
        return self.attention(h, h, h)[0]


class Remembers(Wrapped):
    """Adds what the last pass left, which is no buffer."""

    kept = 0.0

    def between(self, x, h):
        h = h + self.kept
        self.kept = float(x.abs().max() > 100)
        return h


class FeatureOfPlace(Wrapped):
    def between(self, x, h):
        return h * torch.linspace(1, 2, len(h), dtype=h.dtype)[:, None]


MIXING = {
    kind.__name__: kind
    for kind in (
        *(Capacity, LearnedRouter, ExpertChoice, DynamicScale, RescuedOverflow, FiniteOrNothing),
        *(SmallestEntry, Median, LargePassesOnly, SwitchedOff, Neighbour, RowsAsSequence, Remembers),
        FeatureOfPlace,
    )
}


class ScaleOfTheRow(Wrapped):
    """Quantised row by row, which mixes nothing."""

    def between(self, x, h):
        scale = h.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
        return (h / scale).round() * scale


class Codes(nn.Module):
    """Real numbers of which the first is a code: made-up rows may be out of its range."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.rest = nn.Embedding(4, 8), nn.Linear(6, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head((self.table(x[:, 0].long()) + self.rest(x)).relu())


class FiniteRowsAlone(Wrapped):
    def between(self, x, h):
        if not bool(torch.isfinite(x).all()):
            raise FloatingPointError("infinite")
        return h


class Attention(nn.Module):
    """A transformer's layer over tokens (n, length), mean over positions."""

    def __init__(self, n_tokens=20, width=16):
        super().__init__()
        torch.manual_seed(0)
        self.tokens = nn.Embedding(n_tokens, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 32, batch_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.layer(self.tokens(x)).mean(dim=1))


class LastState(nn.Module):
    """A recurrent network over sequences (n, length, 5)."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.states, self.head = nn.LSTM(5, 12, batch_first=True), nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.states(x)[0][:, -1])


def perceptron(width=64):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, 3))


def convolutions():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.GroupNorm(2, 8),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(72, 3),
    )


#: What makes a module, the shape of a row, and the number of tokens; 0 stands for real numbers.
HONEST = {
    "linear": (lambda: nn.Linear(6, 3), (6,), 0),
    "perceptron": (perceptron, (6,), 0),
    "perceptron, wide": (lambda: perceptron(700), (6,), 0),
    "perceptron, float64": (lambda: perceptron().double(), (6,), 0),
    "convolutions": (convolutions, (1, 8, 8), 0),
    "attention": (Attention, (7,), 20),
    "recurrent": (LastState, (4, 5), 0),
    "scale of the row": (ScaleOfTheRow, (6,), 0),
    "codes": (Codes, (6,), 0),
    "finite rows alone": (FiniteRowsAlone, (6,), 0),
}
