"""ModelMix: descent from secret mixtures of the last two heads. Experimental.

This package holds the algorithm, its update, the rules for wrapping, its event and its accountant. Its
amplified epsilon rests on numerical tests, not on a proof, so any version may change or remove it.

Source: Xiao, Wan and Devadas 2022, "Differentially Private Deep Learning with ModelMix".
"""
