"""The stages of a linear head, in the order of its report."""

from ..stage import Order
from .calibration import MeanPrediction, Residuals, Student, Temperature
from .columns import NoisyColumnScales
from .comparison import Comparison
from .geometry import Directions, Length, Mean, Preconditioner
from .labels import Adjustment, ClassCounts, LabelShares, MeanWeight, ScaleOfWeights, TargetScale
from .mapping import PublicMap
from .public_checks import Start, Units
from .training import GradientLengths, Training

STAGES = Order(
    before=(
        PublicMap(),
        ScaleOfWeights(),
        ClassCounts(),
        MeanWeight(),
        LabelShares(),
        Units(),
        TargetScale(),
        NoisyColumnScales(),
        Length(),
        Mean(),
        Directions(),
        Preconditioner(),
        Start(),
        GradientLengths(),
    ),
    training=Training(),
    after=(Comparison(), Temperature(), MeanPrediction(), Residuals(), Adjustment(), Student()),
)
