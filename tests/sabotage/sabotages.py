"""Ways to break the guarantee, each with the tests that have to notice.

A sabotage is a replacement in the source, so small that a review could overlook it. Nearly all of them leave
every fit running, and its report as it was.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """A replacement in the source of a function, method or constant.

    Attributes
    ----------
    name : str
        Qualified name, without the module: ``PoissonBatch.draw``.
    old, new : str
        The tokens of ``old`` occur exactly once in all that has this name in the package. They are those that
        :func:`ast.unparse` writes, so line breaks, comments, quotes and needless brackets do not matter.
    """

    name: str
    old: str
    new: str


@dataclass(frozen=True)
class Sabotage:
    """A way to break the guarantee.

    Attributes
    ----------
    name : str
        What is done.
    breaks : str
        What would be wrong then, in one sentence.
    edits : tuple of Edit
        How it is done.
    tests : tuple of str
        Node ids of tests of which one at least must fail.
    """

    name: str
    breaks: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


def _sabotage(name: str, breaks: str, edited: str, old: str, new: str, *tests: str) -> Sabotage:
    """One edit in what is named ``edited``."""
    return Sabotage(name, breaks, (Edit(edited, old, new),), tests)


_EVERYWHERE = "tests/statistical/test_noise_everywhere.py::test_the_noise_of_a_path_is_what_is_stated"
_LEDGER = "tests/unit/privacy/test_ledger.py::"
_ROUNDING = "tests/unit/rows/test_stated_rounding.py::"
_GEOMETRY = "tests/statistical/test_geometry_noise.py::test_each_stage_asks_for_the_noise_of_its_share"
_TARGETS = "tests/unit/learning/test_targets.py::"
_SAID = "tests/reports/test_said_in_time.py::"
_WORKFLOWS = "tests/reports/test_workflows.py::"
_MODULES = "tests/reports/test_modules.py::"
_FILES = "tests/reports/test_files_of_tables.py::"
_RESUMED = "tests/unit/estimators/test_resumable.py::"
_RELEASE = "tests/unit/engine/test_release.py::"
_GRADIENTS = "tests/property/test_module_gradients.py::"
_RECORD = "tests/property/test_per_instance.py::"
_FIT_MANY = "tests/sklearn/test_fit_many.py::"
_TABLES = "tests/property/test_table_neighbours.py::"
_OF_TABLES = "tests/property/test_charges_of_tables.py::"
_REPLAY = "tests/property/test_replay_of_tables.py::"
_NOISE_OF_TABLES = "tests/statistical/test_noise_of_tables.py::test_each_stage_has_the_noise_of_its_share"
_PERSONS = "tests/property/test_persons_replay.py::"
_OF_PERSONS = "tests/unit/rows/test_persons.py::"
_GROUPS = "tests/unit/estimators/test_groups.py::"
_UNLABELED = "tests/unit/estimators/test_unlabeled.py::"
_FRAMES = "tests/property/test_encoded_frames.py::"
_ANY_TYPE = "tests/property/test_cells_of_any_type.py::"
_ENCODER = "tests/unit/preprocessing/test_table_encoder.py::"
_DOCUMENTS = "tests/unit/test_documents.py::test_the_first_line_says_no_guarantee_and_names_the_leak"
_BESIDE_FITS = "tests/sklearn/test_persons.py::"
_PARTS = "tests/unit/model_selection/test_groups.py::"
_INFERENCE = "tests/property/test_inference_neighbours.py::"
_OF_INFERENCE = (
    "tests/statistical/test_noise_of_inference.py::test_each_release_has_the_noise_of_its_sensitivity"
)
_EVALUATED = "tests/property/test_evaluation_sensitivity.py::"
_SEARCHES = "tests/faults/test_resumed_searches.py::"
_MIXED = "tests/unit/privacy/test_modelmix.py::"
_SEARCH = "tests/sklearn/test_private_search.py::"
_THRESHOLD = "tests/unit/model_selection/test_threshold.py::"

_SHARES_OF_LABELS = (
    "tests/unit/learning/test_label_shares.py::test_a_row_moves_the_sums_by_what_is_stated_for_any_labels"
)

SABOTAGES: tuple[Sabotage, ...] = (
    # -- how much noise is added ------------------------------------------------------------
    _sabotage(
        "noise x 0.66, as it is asked for",
        "Every release has two thirds of the noise that is accounted for.",
        "GaussianMechanism.noise_scale",
        "self.noise_multiplier * part.sensitivity",
        "0.66 * self.noise_multiplier * part.sensitivity",
        _RELEASE + "test_each_part_gets_its_own_noise",
    ),
    _sabotage(
        "noise x 0.66, as it is drawn",
        "The noise source draws less than it is asked for.",
        "NoiseSource.add_noise",
        "array + scale * self.normal",
        "array + 0.66 * scale * self.normal",
        "tests/statistical/test_noise_scale.py::test_released_sums_carry_the_stated_noise[0.5-1.0-seeded]",
    ),
    _sabotage(
        "noise truncated at 3 standard deviations",
        "Sums further than that from the released ones are ruled out, which no epsilon allows.",
        "NoiseSource.add_noise",
        "scale * self.normal(array.shape)",
        "scale * np.clip(self.normal(array.shape), -3, 3)",
        "tests/statistical/test_noise_tails.py::test_continuous_draws_have_gaussian_tails[None]",
    ),
    _sabotage(
        "noise x 0.9 for arrays of more than 32 rows",
        "Heads of many classes have less noise than is accounted for; those of a few are sound.",
        "NoiseSource.add_noise",
        "array + scale * self.normal",
        "array + (0.9 if len(array) > 32 else 1.0) * scale * self.normal",
        "tests/statistical/test_noise_of_large_arrays.py::test_large_arrays_have_the_noise_that_is_stated"
        "[noisy-gd-33]",
    ),
    _sabotage(
        "noise x 1e-6 on Poisson batches",
        "Fits with batch_size release their sums almost exactly; all others are sound.",
        "training",
        "view = info.view.data.view(W)",
        (
            "view = info.view.data.view(W)\n"
            "part = 1 if mechanism._batch.taken is None else 1e-6\n"
            "mechanism.noise_multiplier = part * plan.noise_multiplier"
        ),
        _EVERYWHERE + "[Poisson]",
    ),
    _sabotage(
        "noise x 1e-6 on folds",
        "Fits to some of the rows, as in a cross-validation, release their sums almost exactly.",
        "training",
        "view = info.view.data.view(W)",
        (
            "view = info.view.data.view(W)\n"
            "mechanism.noise_multiplier = (1 if run.members is None else 1e-6) * plan.noise_multiplier"
        ),
        _EVERYWHERE + "[folds]",
    ),
    _sabotage(
        "share ignored in the noise",
        "Several arrays that are released in one step have the noise of one.",
        "GaussianMechanism.noise_scale",
        "part.sensitivity / math.sqrt(part.share)",
        "part.sensitivity",
        _RELEASE + "test_each_part_gets_its_own_noise",
    ),
    _sabotage(
        "public weight applied to the noise",
        "The noise is made smaller by the weight of the private gradient, by which only its sum may be.",
        "training",
        "GaussianMechanism(plan.noise_multiplier, plan",
        "GaussianMechanism(plan.noise_multiplier * (1 - plan.public_weight(1, info.view)), plan",
        _EVERYWHERE + "[adamix]",
    ),
    _sabotage(
        "GEP's coordinates without noise",
        "One of two arrays of a step leaves the rows as it is.",
        "GaussianMechanism.add_noise",
        "noisy.append(self.noise.add_noise(array",
        "noisy.append(array if part.share < 1 and array.ndim == 1 else self.noise.add_noise(array",
        _EVERYWHERE + "[gep]",
    ),
    _sabotage(
        "means of a scaler without noise",
        "NoisyScaler keeps the exact means of private columns and makes only the deviations noisy.",
        "NoisyScaler._fit_within",
        "np.clip(noisy[:n_features] / (weight * n_terms), -1, 1)",
        "np.clip(contributions[:, :n_features].mean(axis=0) / weight, -1, 1)",
        "tests/sklearn/test_noisy_scaler.py::test_a_seed_is_reproducible_and_said_to_be_not_private",
    ),
    _sabotage(
        "exact sums in a report",
        "A hidden attribute of a scaler's report, which pickles keep, holds the sums before their noise.",
        "noisy_sums",
        "return (result, transaction.report(event, source.n_rows, table.unit, treated_as_public))",
        (
            "report = transaction.report(event, source.n_rows, table.unit, treated_as_public)\n"
            'object.__setattr__(report, "_sums", next(table.blocks()).sum(axis=0))\n'
            "return (result, report)"
        ),
        "tests/property/test_nothing_is_kept.py::test_no_exact_sum_and_no_row_is_kept[scaler]",
    ),
    _sabotage(
        "class counts forgotten if the start is left out",
        "What balanced weights cost is spent again by a fit that leaves its public rows out.",
        "_unused",
        'return {name if name in kept else f"unused {name}": share for',
        'return {f"unused {name}": share if name not in kept else 0.0 for',
        "tests/property/test_charges_add_up.py::test_a_start_that_is_left_out_is_paid_for[balanced-True]",
    ),
    _sabotage(
        "counts with a sensitivity of 1/2",
        "The noise of private scores is half of what is charged.",
        "counts_query",
        "(ReleasedArray(1.0, share),)",
        "(ReleasedArray(0.5, share),)",
        "tests/unit/learning/test_counting.py::"
        "test_a_row_changes_a_count_by_one_and_the_noise_is_that_of_one_row",
    ),
    _sabotage(
        "geometry that spends the whole budget",
        "Mean and directions have the noise of the whole budget, which the training spends again.",
        "Budget.multiplier",
        "math.sqrt(n_releases / share)",
        "math.sqrt(n_releases)",
        _GEOMETRY + "[no public rows]",
    ),
    _sabotage(
        "a comparison that nothing is set aside for",
        "The comparison of two heads comes on top of a budget that the steps have spent.",
        "make_plan",
        "share -= sum(costs)",
        "share -= 1e-9",
        _GEOMETRY + "[public rows]",
    ),
    _sabotage(
        "a check of the start that less is set aside for",
        "The count of private rows that the public head gets right has less noise than its share allows.",
        "fit_procedure",
        'multiplier = inputs.budget.multiplier(checking["check of the start"])',
        'multiplier = inputs.budget.multiplier(9 * checking["check of the start"])',
        _GEOMETRY + "[public rows]",
    ),
    _sabotage(
        "compared heads with the sensitivity of one",
        "The noise of several differences is that of a single one.",
        "sensitivity_of",
        "math.sqrt(n_sums) * (1 + 1e-9)",
        "1.0",
        "tests/unit/learning/test_comparison.py::test_the_sensitivity_is_reached_and_not_more_than_needed",
    ),
    _sabotage(
        "class counts with a sensitivity of 1/2",
        "The noise of class counts is half of what is accounted for.",
        "counts_query",
        "(ReleasedArray(1.0, share),)",
        "(ReleasedArray(0.5, share),)",
        "tests/statistical/test_class_counts.py::test_counts_carry_the_noise_of_their_multiplier",
    ),
    _sabotage(
        "compared squared errors with a sensitivity of 1/2",
        "The noise of the checks of a regression is half of what is charged.",
        "gains_query",
        "(scalars(1.0, len(others), 1.0),)",
        "(scalars(0.5, len(others), 1.0),)",
        _TARGETS + "test_the_sensitivity_is_reached_and_not_more_than_needed[1]",
    ),
    _sabotage(
        "compared squared errors without a clip",
        "A target far out decides whether the public rows are left out.",
        "_gains",
        "loss) / limit, 1.0)",
        "loss) / limit, 1e9)",
        _TARGETS + "test_no_neighbour_moves_the_sum_by_more_than_its_noise_is_for[far-float64]",
    ),
    _sabotage(
        "a check of public targets with a tenth of its noise",
        "The sum that tells whether a regression keeps its public rows costs a hundred times what is stated.",
        "start_predicts",
        "GaussianMechanism(multiplier, 1",
        "GaussianMechanism(0.1 * multiplier, 1",
        _GEOMETRY + "[regression, public rows]",
    ),
    _sabotage(
        "second moments without a clip",
        "Rows longer than 1 add more to the noisy power method than is stated.",
        "_second_moments",
        "clip_rows(Z, block, _CLIP)",
        "clip_rows(Z, block, L2Clip(1e9))",
        "tests/unit/learning/test_geometry.py::test_no_row_adds_more_than_length_one_to_the_second_moments",
    ),
    # -- which noise is added ---------------------------------------------------------------
    _sabotage(
        "the same noise in every step",
        "The difference of two releases is free of noise.",
        "NoiseSource.add_noise",
        "scale * self.normal(array.shape)",
        "scale * self.__dict__.setdefault(str(array.shape), self.normal(array.shape))",
        _EVERYWHERE + "[full batch]",
    ),
    _sabotage(
        "noise of NumPy's default_rng(0)",
        "Anyone can draw the noise again and subtract it.",
        "_generator_of",
        "np.random.Generator(AESCounter(key=key))",
        "np.random.default_rng(0)",
        "tests/unit/privacy/test_noise.py::test_fresh_sources_differ_and_are_cryptographic",
        "tests/unit/privacy/test_noise.py::test_keys_come_from_the_operating_system",
    ),
    _sabotage(
        "keys of 16 bits",
        "An attacker tries out all noise that a fit can have, within a minute.",
        "_generator_of",
        "secrets.randbits(128)",
        "secrets.randbits(16)",
        "tests/unit/privacy/test_noise.py::test_keys_come_from_the_operating_system",
    ),
    _sabotage(
        "discrete noise that is continuous",
        "Low-order bits of discrete releases tell what was added up.",
        "DiscreteNoise.add_noise",
        "return noisy.reshape(array.shape) * grid",
        "return super().add_noise(array, scale, grid)",
        "tests/unit/privacy/test_noise.py::test_discrete_noise_stays_on_the_grid",
    ),
    _sabotage(
        "a Poisson batch drawn once and kept",
        "The same rows take part in every step, and amplification by sampling is claimed for nothing.",
        "PoissonBatch.draw",
        "return noise.uniform((n_private,)) < self.rate(n_private)",
        'return self.__dict__.setdefault("kept", noise.uniform((n_private,)) < self.rate(n_private))',
        "tests/statistical/test_poisson.py::test_a_batch_is_drawn_anew_in_each_step[60]",
    ),
    _sabotage(
        "ModelMix with sign(0) = 0",
        "The first step, which starts from two equal heads, is not mixed and is accounted for as if it were.",
        "MixingDescent.step",
        "np.where(gap >= 0, least / 2, -least / 2)",
        "np.sign(gap) * least / 2",
        "tests/unit/algorithms/test_modelmix.py::test_equal_heads_are_pushed_apart_upwards",
    ),
    # -- what one row can do ----------------------------------------------------------------
    _sabotage(
        "clip x 1.5",
        "Gradients are half as long again as the sensitivity says.",
        "clip_rows",
        "shorten_rows(R, lengths, threshold)",
        "shorten_rows(R, lengths, 1.5 * threshold)",
        "tests/property/test_sensitivity.py::test_no_row_contributes_more_than_the_clip_states[l2]",
    ),
    Sabotage(
        "compiled clip x 1.001, unchecked",
        "Gradients of tables are a little longer than the sensitivity says, and no check stops the loops.",
        (
            Edit("compiled", "np.float32(threshold / (1 +", "np.float32(1.001 * threshold / (1 +"),
            Edit("compiled", "return sums if is_right(sums) else None", "return sums"),
        ),
        ("tests/property/test_compiled_loops.py::test_one_row_alone_obeys_its_clip",),
    ),
    Sabotage(
        "compiled clip of residuals, unchecked",
        "Compiled loops clip residuals as if all rows had unit length, and no check stops them.",
        (
            Edit("_clip_softmax", "bound = np.sqrt(squares[i]) * lengths[i]", "bound = np.sqrt(squares[i])"),
            Edit("compiled", "return sums if is_right(sums) else None", "return sums"),
        ),
        ("tests/property/test_compiled_loops.py::test_one_row_alone_obeys_its_clip",),
    ),
    _sabotage(
        "clip x 1.5 for single sums",
        "DOPE, GEP and the statistics of a scaler are clipped too late.",
        "L2Clip.weights",
        "threshold = float(self.threshold)",
        "threshold = 1.5 * float(self.threshold)",
        "tests/property/test_difference_bounds.py::test_no_difference_from_a_centre_exceeds_the_clip[arrays]",
    ),
    _sabotage(
        "rows' lengths left out of the clip",
        "A long row contributes as much more as it is longer.",
        "clip_rows",
        "lengths = block.norms if R.dtype == np.float64 else block.single_norms",
        "lengths = np.ones(len(R), R.dtype)",
        "tests/property/test_sensitivity.py::test_no_row_contributes_more_than_the_clip_states[l2]",
    ),
    _sabotage(
        "row norm bound without its slack",
        "Lengths whose squares are added up in float32 come out too short, and clips too long.",
        "row_norm_bounds",
        "squares *= 1 + 2 * dot_error(k + 5, dtype)",
        "pass",
        "tests/unit/linear/test_products.py::test_bounds_on_row_lengths_are_bounds_and_close",
    ),
    _sabotage(
        "differences without the rounding of their lengths",
        "A gradient that nearly equals the public one has a computed length of nothing and is not clipped.",
        "deviation_bounds",
        "bounds = (square.clip(min=0) + slack) ** 0.5 + 2 * eps * lengths",
        "bounds = square.clip(min=0) ** 0.5",
        "tests/property/test_difference_bounds.py::test_no_difference_from_a_centre_exceeds_the_clip[arrays]",
    ),
    _sabotage(
        "discrete contributions rounded to the nearest",
        "Contributions get longer than their clip by rounding to the grid.",
        "truncated",
        "namespace_of(contributions).trunc(",
        "namespace_of(contributions).round(",
        "tests/unit/rows/test_memory.py::TestExactSums::test_rounding_lengthens_no_contribution",
    ),
    _sabotage(
        "losses that are not clipped",
        "A row's loss along a random direction is released without a bound.",
        "clipped",
        "return np.clip(values, -bound, bound, out=values)",
        "return values",
        "tests/property/test_module_sensitivity.py::"
        "test_zeroing_out_a_row_moves_every_step_by_at_most_its_sensitivity[dpzero]",
    ),
    _sabotage(
        "softmax shifted for all rows of a block",
        "One row with large outputs moves the last bits of what all other rows contribute.",
        "SoftmaxLoss.residuals",
        "largest - largest.clip(-_FAR, _FAR)",
        "largest",
        "tests/property/test_row_locality.py::test_residuals_and_their_lengths_are_a_row_s_own",
    ),
    _sabotage(
        "a module's trial returns at once",
        "Modules that mix the rows of a batch are trained, and no clip bounds what one row does.",
        "check_forward",
        "size = max(size, _FIRST)",
        "return",
        "tests/unit/estimators/modules/test_probe.py::test_modules_that_mix_rows_are_refused[0-Capacity]",
    ),
    _sabotage(
        "members of a fold ignored",
        "A fit to some of the rows uses all of them, and its number of rows is wrong.",
        "training",
        "mechanism.begin_step(run.members, drawn(",
        "mechanism.begin_step(None, drawn(",
        "tests/sklearn/test_fit_many.py::"
        "test_a_row_of_another_fold_moves_no_sum_and_an_own_one_no_more_than_its_sensitivity[noisy-gd]",
    ),
    _sabotage(
        "rows of other batches take part",
        "Heads that are trained together get the sums of each other's batches and folds.",
        "_masked",
        "part[in_library_of(part, ~mask[rows])] = 0",
        "part[in_library_of(part, ~mask[rows])] *= 1",
        "tests/unit/rows/test_sources.py::test_requests_with_batches_of_their_own_are_answered_in_one_pass"
        "[memory-all]",
    ),
    _sabotage(
        "heads grouped by equality of private labels",
        "Heads with other weights for a class share passes if their private labels are the same.",
        "_same_labels",
        "facts(one) == facts(other)",
        "(facts(one) == facts(other) or np.array_equal(one.private.y, other.private.y))",
        _FIT_MANY + "test_no_label_decides_which_heads_share_a_pass[0]",
    ),
    _sabotage(
        "heads that share rows if under 0.1% of labels differ",
        "Heads with other weights for a class share passes if few private labels differ.",
        "_same_labels",
        "facts(one) == facts(other)",
        "(facts(one) == facts(other) or np.mean(one.private.y != other.private.y) < 1e-3)",
        _FIT_MANY + "test_no_label_decides_which_heads_share_a_pass[1]",
    ),
    _sabotage(
        "a batch gathered without places",
        "A row of a random batch moves later rows to other places in products and to other panels of sums.",
        "rounds",
        "lane = index % lanes",
        "lane = np.arange(len(index)) % lanes",
        "tests/property/test_places_in_batches.py::"
        "test_what_others_contribute_does_not_depend_on_a_row[memory-float32-whitened]",
    ),
    _sabotage(
        "gathered batches without the error of their sums",
        "Rows that move to other blocks are rounded anew, and no sensitivity says so.",
        "sum_error",
        "n_blocks = -(-n_rows // block_rows) if moving else 1",
        "n_blocks = 1",
        "tests/unit/linear/test_sums.py::test_rows_that_move_cost_the_rounding_of_all_blocks",
    ),
    _sabotage(
        "a module's batch gathered without places",
        "Rows of a random batch pass through a module in another place if another row is in the batch.",
        "ModuleRows.order",
        "return np.concatenate(list(rounds(taking_part, size)))",
        "return np.flatnonzero(taking_part)",
        "tests/unit/estimators/modules/test_failing_rows.py::test_a_row_has_its_place_whatever_else_is_in_a_batch",
    ),
    _sabotage(
        "gradients of a module clipped by their mean norm",
        "A row with a long gradient is clipped as a usual one, and moves a sum by more than is stated.",
        "gradients_of",
        "norms = row_norm_bounds(G)",
        "norms = np.full(len(G), row_norm_bounds(G).mean())",
        f"{_GRADIENTS}test_no_row_moves_a_step_by_more_than_its_sensitivity[noisy-gd-perceptron]",
    ),
    _sabotage(
        "gradients of a module measured without the last parameter",
        "Norms are too small by the gradient of one bias, and clipped gradients longer than the clip.",
        "gradients_of",
        "norms = row_norm_bounds(G)",
        "norms = row_norm_bounds(G[:, :-1])",
        f"{_GRADIENTS}test_no_row_moves_a_step_by_more_than_its_sensitivity[noisy-gd-perceptron]",
    ),
    _sabotage(
        "gradients of a module taken of the mean of a chunk",
        "Each row contributes the mean gradient of its chunk, which one row can turn.",
        "row_gradients",
        "for name in parameters.names], dim=1)",
        "for name in parameters.names], dim=1).mean(0).expand(len(x), -1)",
        f"{_GRADIENTS}test_other_rows_contribute_the_same_bits[perceptron]",
    ),
    _sabotage(
        "gradients of a module that are not finite are kept",
        "One row makes a sum infinite or NaN, whatever the noise.",
        "gradients_of",
        "G[~finite] = 0",
        "pass",
        f"{_GRADIENTS}test_no_row_moves_a_step_by_more_than_its_sensitivity[noisy-gd-steep]",
        "tests/unit/estimators/modules/test_first_order.py::test_gradients_that_are_not_finite_are_zero",
    ),
    _sabotage(
        "gradients of rows outside of a batch",
        "Rows that were not drawn take part in a step, and amplification by sampling is claimed for nothing.",
        "GradientRows._visits",
        "yield _visit(rows, G",
        (
            "if request.batch.taken is not None:\n"
            "    rows = np.full_like(rows, np.argmax(request.batch.taken))\n"
            "yield _visit(rows, G"
        ),
        "tests/unit/estimators/modules/test_first_order.py::"
        "test_a_linear_module_is_trained_as_the_head_that_it_is",
    ),
    _sabotage(
        "gradients of a module without a trial",
        "A module whose backward pass mixes the rows of a chunk is trained, and no clip bounds one row.",
        "check_forward",
        "if gradients is not None:",
        "if gradients is None:",
        "tests/unit/estimators/modules/test_first_order.py::"
        "test_a_module_that_mixes_gradients_alone_is_refused",
    ),
    _sabotage(
        "no rounding stated for sums of a module's gradients",
        "Rounding moves a sum by more than its stated sensitivity.",
        "GradientRows.sum_error",
        "return stated_error(request, self.n_rows, np.float64, block_rows=block_rows)",
        "return super().sum_error(request)",
        "tests/unit/estimators/modules/test_first_order.py::test_the_rounding_of_sums_is_stated",
    ),
    _sabotage(
        "a module that fails on a row ends the fit",
        "The step at which a fit ends tells that a row was in its batch.",
        "separately",
        "if len(tried) > 1:",
        "if len(tried) == len(x):\n    raise\nif len(tried) > 1:",
        "tests/unit/estimators/modules/test_failing_rows.py::test_a_row_that_fails_at_a_later_step_ends_nothing",
    ),
    _sabotage(
        "an error after the charge that quotes what a module says",
        "The error that ends a fit holds a private row, and so do the logs that it ends in.",
        "module_procedure",
        "withheld = type(error).__name__",
        "withheld = repr(error)",
        "tests/unit/estimators/modules/test_failing_rows.py::"
        "test_no_error_after_the_charge_quotes_what_a_module_says_of_rows",
    ),
    _sabotage(
        "rows after a failure pass in other places",
        "A row on which a module fails moves the last bits of what all rows of its chunk contribute.",
        "separately",
        "places = np.full(len(x), tried[0])\nplaces[tried] = tried",
        "places = np.resize(tried, len(x))\ntried = np.unique(places)",
        "tests/unit/estimators/modules/test_failing_rows.py::test_other_rows_keep_their_losses_and_their_places",
    ),
    _sabotage(
        "losses that are not numbers win",
        "A candidate at which a module fails on many rows has a loss of 0 and is chosen.",
        "CandidateQuery._losses",
        "clipped(probe.losses(Z, block.y), self.loss_clip, self.loss_clip)",
        "clipped(probe.losses(Z, block.y), self.loss_clip)",
        "tests/unit/estimators/modules/test_failing_rows.py::test_a_candidate_that_fails_does_not_win",
    ),
    _sabotage(
        "TensorFloat-32 on devices",
        "Weighted residuals and rows are rounded to 11 bits after the clip, if the user allows it elsewhere.",
        "full_precision.__enter__",
        'torch.set_float32_matmul_precision("highest")',
        'torch.set_float32_matmul_precision("high")',
        "tests/unit/rows/test_devices.py::TestPrecision::test_by_the_setting_for_all[high]",
    ),
    # -- rounding ---------------------------------------------------------------------------
    _sabotage(
        "sums of one block left out",
        "The last rows have no part in what is released, while the report counts them.",
        "selections",
        "for start in range(0, n_rows, block_rows):",
        "for start in range(0, max(n_rows - block_rows, 1), block_rows):",
        "tests/unit/rows/test_memory.py::test_answers_equal_dense_sums_whatever_the_blocks",
    ),
    _sabotage(
        "panels of any number of rows",
        "Sums in float32 run over a million rows, and their stated error is that of a few hundred.",
        "add_products",
        "k, d_in = (C.shape[1], X.shape[1])",
        "k, d_in, panel_rows = (C.shape[1], X.shape[1], 2**24)",
        _ROUNDING + "test_sums_in_single_precision_are_short_on_every_source[memory]",
    ),
    _sabotage(
        "panels of any number of rows on a device",
        "Sums of tensors in float32 run over a million rows; their stated error is that of a few hundred.",
        "add_tensor_products",
        "n_panels = len(X) // PANEL_ROWS",
        "n_panels = 0",
        _ROUNDING + "test_tensors_are_added_up_in_short_sums",
    ),
    _sabotage(
        "sums without a stated error",
        "Sensitivities leave out the rounding of sums of rows in memory.",
        "InMemoryRows.sum_error",
        "return stated_error(request, self.n_rows, self._X.dtype)",
        "return EXACT",
        _RELEASE + "test_the_rounding_of_sums_is_part_of_the_sensitivity",
    ),
    _sabotage(
        "decoded rows in a file that stays",
        "Private rows stay on the disk in the clear when a fit is killed.",
        "temporary_memory",
        "tempfile.TemporaryFile(dir=folder)",
        "tempfile.NamedTemporaryFile(dir=folder, delete=False)",
        "tests/unit/rows/test_temporary.py::test_nothing_is_left_when_a_fit_is_killed",
    ),
    _sabotage(
        "a full disk that ends a fit after its charge",
        "Space for preprocessed rows is asked for after the charge, so a fit that ends has cost its budget.",
        "StreamedTable.remapped_rows",
        "temporary_memory(self.shape[0], self.shape[1] + 1, dtype)",
        "pass",
        "tests/unit/rows/test_temporary.py::test_a_disk_that_is_too_full_is_refused_before_the_charge",
    ),
    _sabotage(
        "decoded rows that are not finite",
        "A row that is not finite makes the sums NaN, which tells that it exists.",
        "StreamedTable._decoded",
        "check_finite(finite_rows(piece).all(), shard.file)",
        "check_finite(True, shard.file)",
        "tests/unit/rows/test_bad_rows.py::test_a_row_that_is_not_finite",
    ),
    _sabotage(
        "sums without a stated error on disk",
        "Sensitivities leave out the rounding of sums of rows that are read block by block.",
        "StreamedRows.sum_error",
        "whitening, stretch = (self._whitening, self._map.stretch)",
        "return EXACT",
        _ROUNDING + "test_no_source_states_less_than_its_precision_loses[memory map, as if wide-float64]",
    ),
    _sabotage(
        "rounding of sparse rows without the stretch for differences",
        "Centred sparse rows are differences of much longer terms, whose rounding is not stated.",
        "SparseRows.sum_error",
        ", stretch=longer",
        ", stretch=longer / longer",
        "tests/property/test_sparse_rounding.py::"
        "test_no_row_moves_the_rounding_by_more_than_is_stated[12-False]",
    ),
    _sabotage(
        "DOPE's sums in float32",
        "Sums of long gradients are rounded by more than the short differences that are released of them, "
        "for which the noise would have to be twenty times as large.",
        "DopeQuery.step",
        "panel_rows=0,",
        "",
        "tests/property/test_longest_terms.py::test_the_rounding_of_long_terms_costs_next_to_no_noise"
        "[dope-sgd-float32-inf]",
    ),
    _sabotage(
        "GEP's sums in float32",
        "Sums of long gradients are rounded by more than the short residuals that are released of them, "
        "for which the noise would have to be twenty times as large.",
        "GepQuery.step",
        "panel_rows=panel_rows_for(_MARGIN / shortest),",
        "",
        "tests/property/test_longest_terms.py::test_the_rounding_of_long_terms_costs_next_to_no_noise"
        "[gep-float32-inf]",
    ),
    _sabotage(
        "DOPE's terms stated as short as what is released",
        "The rounding of sums is stated for released differences, a thousandth of what is added up.",
        "difference_part",
        "ReleasedArray(sensitivity, longest_term=terms",
        "ReleasedArray(sensitivity",
        "tests/property/test_longest_terms.py::test_no_term_is_longer_than_is_stated[dope-sgd]",
    ),
    _sabotage(
        "GEP's terms stated as short as what is released",
        "The rounding of sums is stated for released residuals, a thousandth of what is added up.",
        "GepQuery._parts",
        "longest_term=_MARGIN / shortest * sensitivity,",
        "",
        "tests/property/test_longest_terms.py::test_no_term_is_longer_than_is_stated[gep]",
    ),
    _sabotage(
        "discrete sums on too fine a grid",
        "Sums that are promised to be exact are rounded.",
        "sum_resolution",
        "spare = 52 -",
        "spare = 62 -",
        "tests/unit/rows/test_memory.py::TestExactSums::test_no_rounding_in_any_order",
    ),
    _sabotage(
        "a module's sums not made shorter",
        "Sums of losses move by more than the clip, by rounding.",
        "_rounded_sums",
        "shorter = 1 - ",
        "shorter = 1 - 0 * ",
        "tests/property/test_module_rows.py::test_a_zeroed_row_moves_the_rounded_sum_by_less_than_its_bound",
    ),
    # -- accounting -------------------------------------------------------------------------
    _sabotage(
        "accountant with T - 1",
        "One step of each fit is free.",
        "_",
        "gaussian.epsilon_for(mu, delta)",
        "gaussian.epsilon_for(mu * math.sqrt(max(event.n_steps - 1, 0.5) / event.n_steps), delta)",
        "tests/unit/privacy/test_events.py::test_published_values",
    ),
    _sabotage(
        "calibration with T - 1",
        "The noise is that of one step less than are taken.",
        "noise_multiplier_for",
        "enough = math.sqrt(n_steps)",
        "enough = math.sqrt(max(n_steps - 1, 1))",
        "tests/unit/privacy/test_events.py::test_any_two_determine_the_third",
    ),
    _sabotage(
        "accountant of Poisson batches with T - 1",
        "One step of each fit with batch_size is free.",
        "_epsilon",
        "accountant.compose(step, event.n_steps)",
        "accountant.compose(step, event.n_steps - 1)",
        "tests/unit/privacy/test_events.py::test_sampled_epsilon_is_dp_accountings",
    ),
    _sabotage(
        "sampling rate halved in the event",
        "Batches are accounted for as if they were half as large.",
        "make_plan",
        "recipe.event(sigma, n_steps, rate, budget.noise)",
        "recipe.event(sigma, n_steps, rate if rate == 1 else rate / 2, budget.noise)",
        "tests/statistical/test_poisson.py::test_the_report_is_that_of_sampled_batches",
    ),
    _sabotage(
        "replace_one without the factor 2",
        "A replaced row is accounted for as if it were a removed one.",
        "mu_of_budget",
        "return mu / shift_of(neighboring)",
        "return mu",
        "tests/unit/privacy/test_events.py::test_any_two_determine_the_third",
    ),
    _sabotage(
        "replace_one without the factor 2 in events",
        "Where epsilon follows from the noise, a replaced row is accounted for as if it were a removed one.",
        "shift_of",
        'return 2.0 if neighboring == "replace_one" else 1.0',
        "return 1.0",
        "tests/unit/privacy/test_events.py::test_replacing_a_row_costs_twice_the_sensitivity",
    ),
    _sabotage(
        "discrete noise accounted for as continuous",
        "A discrete Gaussian gets an epsilon that is proved for the continuous one alone.",
        "GaussianEvent.mu",
        'if self.sampling_rate < 1 or self.noise == "discrete":',
        "if self.sampling_rate < 1:",
        "tests/unit/privacy/test_events.py::test_discrete_noise_costs_a_little_more_and_never_less",
    ),
    _sabotage(
        "epsilon rounded down",
        "The reported epsilon lies below the exact one.",
        "epsilons_for",
        "mu * x * (1 + _SAFETY)",
        "mu * x * (1 - _SAFETY)",
        "tests/unit/privacy/test_gaussian.py::test_epsilon_is_the_safe_inverse_of_the_curve",
    ),
    _sabotage(
        "more steps than are accounted for",
        "A run may go on after its last step.",
        "GaussianMechanism.begin_step",
        "if self.step >= self.n_steps:",
        "if False:",
        _RELEASE + "test_no_step_beyond_those_that_were_paid_for",
    ),
    _sabotage(
        "shares that add up to more than a step",
        "A step may release as often as it likes.",
        "GaussianMechanism.admit",
        "self._share_left -= sum(",
        "sum(",
        _RELEASE + "test_shares_of_all_rounds_count_towards_one_step",
    ),
    _sabotage(
        "a search accounted for as one trial",
        "All trials of a grid together cost as much as one.",
        "SearchTerms.event",
        "squares = trials / trial**2",
        "squares = 1 / trial**2",
        "tests/sklearn/test_private_search.py::TestBudget::test_what_was_released_composes_to_the_budget",
    ),
    _sabotage(
        "all trials of a random search are shown",
        "What must stay secret for the choice to cost so little is in cv_results_.",
        "PrivateSearchCV.fit",
        'if plan.strategy == "random":',
        "if False:",
        "tests/sklearn/test_private_search.py::TestWhatIsShown::test_a_random_search_shows_the_best_trial_alone",
    ),
    _sabotage(
        "scores of a search with half the noise",
        "Noisy counts cost more than is set aside for them.",
        "SearchTerms.score_multiplier",
        "/ math.sqrt(self.score_share)",
        "/ math.sqrt(4 * self.score_share)",
        "tests/sklearn/test_private_search.py::TestBudget::test_what_was_released_composes_to_the_budget[counts]",
    ),
    _sabotage(
        "mixing accounted for outside of the tested grids",
        "ModelMix claims amplification where its argument was never tried.",
        "renyi",
        "known &= shift <= MAX_SHIFT and width >= MIN_WIDTH",
        "pass",
        "tests/unit/privacy/test_modelmix.py::test_nothing_is_claimed_where_nothing_was_tested",
    ),
    _sabotage(
        "half of the mixing",
        "Heads are hidden in mixtures of half the width that ModelMix is accounted for by.",
        "MixingDescent.step",
        "np.abs(gap) < least, np.where",
        "np.abs(gap) < least / 2, 0.5 * np.where",
        "tests/unit/algorithms/test_modelmix.py::test_the_gap_becomes_the_old_one_and_the_threshold",
    ),
    # -- fits that are resumed --------------------------------------------------------------
    _sabotage(
        "a release that is not recorded",
        "A copy of a checkpoint draws the noise of the same steps again.",
        "GaussianMechanism.add_noise",
        "self.before_noise()",
        "pass",
        _RESUMED + "test_a_step_that_was_drawn_and_not_kept_is_left_out",
    ),
    _sabotage(
        "a lost release that is drawn again",
        "Whoever interrupts fits gets the numbers of a step with two draws of noise.",
        "Checkpoint.followed",
        "elif step <= n_recorded:",
        "elif False:",
        _RESUMED + "test_a_step_that_was_drawn_and_not_kept_is_left_out",
        _RESUMED + "test_a_number_that_a_fit_cannot_do_without_ends_it",
    ),
    _sabotage(
        "a step that is recorded twice",
        "Two fits from copies of a checkpoint release the same steps.",
        "write_step",
        '"UPDATE charges SET steps = ? WHERE id = ? AND dataset = ? AND steps = ?"',
        '"UPDATE charges SET steps = ? WHERE id = ? AND dataset = ? AND steps >= ?"',
        "tests/unit/privacy/test_ledger.py::test_a_ledger_records_steps_in_their_order_and_once",
    ),
    _sabotage(
        "a checkpoint that serves any fit",
        "A fit of 30 steps goes on from one of 20, and together they spend more than was charged.",
        "Checkpoint._begin",
        "if known != key:",
        "if False:",
        _RESUMED + "test_another_fit_is_refused",
    ),
    # -- ledger and report ------------------------------------------------------------------
    Sabotage(
        "a charge after the release",
        "A fit that the ledger refuses has released everything by then.",
        (
            Edit("transact", "context.enter_context(charged(starts))", "pass"),
            Edit(
                "transact",
                "return drive(",
                "context.callback(lambda: charged(starts).__enter__())\nreturn drive(",
            ),
        ),
        (
            "tests/sklearn/test_ledger_workflows.py::"
            "test_over_budget_releases_nothing_and_keeps_the_earlier_fit",
            "tests/sklearn/test_ledger_workflows.py::test_a_fit_that_fails_after_its_charge_keeps_it",
        ),
    ),
    _sabotage(
        "a ledger that forgets every charge but the first",
        "Charges after the first are listed and not added up.",
        "LedgerDataset._charging",
        "write_account(connection, account)\nreturn",
        "_ = account.n_charges > 1 or write_account(connection, account)\nreturn",
        _LEDGER + "test_running_sums_are_those_of_the_charges",
    ),
    _sabotage(
        "charges of several fits one by one",
        "The first of several fits stay charged though a later one is refused, and none of them runs.",
        "charge_together",
        "if plain and len(requests) < 2 or",
        "if True or",
        "tests/sklearn/test_ledger_workflows.py::test_fits_of_one_call_are_charged_together_or_not_at_all",
    ),
    _sabotage(
        "a ledger that admits everything",
        "Fits run whose charges exceed the budget.",
        "Account.after",
        "if not rule.admits(self.total, event):",
        "if False:",
        "tests/sklearn/test_ledger_workflows.py::test_over_budget_releases_nothing_and_keeps_the_earlier_fit",
    ),
    _sabotage(
        "a budget that promises one fit too many",
        "A team plans with a fit that the ledger will refuse.",
        "PrivacyFilter.repetitions",
        "return n",
        "return n + 1",
        "tests/unit/privacy/test_fits_left.py::test_parts_of_a_budget_are_all_admitted",
    ),
    _sabotage(
        "an attacker who guesses with half of mu",
        "Cards and pages say that attackers succeed less often than they can.",
        "attack_success",
        "ndtr(mu / 2)",
        "ndtr(mu / 4)",
        "tests/unit/privacy/test_page.py::test_the_best_attack_on_gaussian_noise_reaches_the_bound",
    ),
    _sabotage(
        "a page that takes any budget for Gaussian DP",
        "The page of a ledger bounds attacks on discrete noise by the curve of Gaussian noise.",
        "Account.attack_success",
        "and (self.total <= rule.most)",
        "",
        "tests/unit/privacy/test_page.py::test_what_no_sum_can_hold_is_bounded_by_the_budget",
    ),
    _sabotage(
        "a threshold that keeps the mu of one release",
        "The report of a threshold states the curve of Gaussian DP, which its discrete noise does not have.",
        "_weaker",
        'inexact = {} if exact or not hasattr(first, "mu") else {"mu": None}',
        "inexact: dict[str, Any] = {}",
        "tests/unit/model_selection/test_threshold.py::test_a_mu_is_that_of_both_releases",
    ),
    _sabotage(
        "a private score that is not charged",
        "Counts of private rows are released and the ledger does not know of them.",
        "PrivateSumsMixin._noisy_sums",
        "self.ledger, random_state",
        "None, random_state",
        "tests/sklearn/test_private_search.py::TestLedger::test_a_private_score_is_charged",
    ),
    _sabotage(
        "a ledger that decides before it holds its lock",
        "Two processes that charge at once both get the last of a budget.",
        "LedgerDataset._charging",
        (
            "if reserved is None:\n"
            "    self.account.after(stored, neighboring, unit=unit)\n"
            "\n"
            "def work(connection: Connection) -> Charge:\n"
            "    before = self.ledger._account(connection, self.name)"
        ),
        "decided = self.account\n\ndef work(connection: Connection) -> Charge:\n    before = decided",
        "tests/unit/privacy/test_ledger_processes.py::test_exactly_one_of_two_processes_gets_the_last_of_a_budget",
    ),
    _sabotage(
        "a seed that is not reported",
        "A fit with noise that anyone can draw again is reported as private.",
        "NoiseSource.__init__",
        '"cryptographic" if seed is None else "seeded"',
        '"cryptographic"',
        "tests/unit/privacy/test_noise.py::test_seeds_reproduce_and_say_so",
    ),
    _sabotage(
        "a report that always says private",
        "The verdict of a seeded fit is that of a private one.",
        "Document.private",
        "return not self.no_guarantee",
        "return True",
        "tests/unit/privacy/test_report.py::test_a_seeded_run_is_reported_as_not_private",
    ),
    _sabotage(
        "a report that keeps the verdict of a leaking fit",
        "The line of the guarantee is that of a sound fit, though the first line says that there is none.",
        "Statement._verdict",
        'return f"NO GUARANTEE; without the leaks: {verdict}" if self.leaks else verdict',
        "return verdict",
        _DOCUMENTS + "[classes-text]",
    ),
    _sabotage(
        "privacy_ forgets that classes were read from labels",
        "The fit warns that it read the classes from private labels, and its report knows nothing of it.",
        "encode_classes",
        'estimator._leaks = (*estimator._leaks, "the classes were read from the private labels")',
        "pass",
        _DOCUMENTS + "[classes-text]",
    ),
    _sabotage(
        "privacy_ forgets the scaler before the head",
        "The fit warns of a step that learned from private rows, and its report knows nothing of it.",
        "warn_of_leaks",
        'return report.in_words("leak")',
        "return ()",
        _DOCUMENTS + "[a scaler-text]",
    ),
    _sabotage(
        "a card forgets the leaks of a pipeline",
        "A card states the guarantee of a pipeline whose scaler learned from private rows.",
        "checked",
        'leaks=tuple(dict.fromkeys((*report.leaks, *findings.in_words("leak", "uncounted"))))',
        "leaks=()",
        _DOCUMENTS + "[a scaler-card]",
    ),
    _sabotage(
        "a card of a stack without the fits to folds",
        "A card adds up the members that are left, and leaves out the fits that were made and dropped.",
        "checked",
        'findings.in_words("leak", "uncounted")',
        'findings.in_words("leak")',
        _DOCUMENTS + "[fits that are dropped-card]",
    ),
    _sabotage(
        "a ledger that keeps the guarantee of a leaking fit",
        "The page of a ledger states a budget for private rows that a leak has revealed.",
        "LedgerDataset._charging",
        "holds, described = (not leaks,",
        "holds, described = (private,",
        _DOCUMENTS + "[classes-ledger]",
    ),
    _sabotage(
        "a private search that knows the leaks of its winner alone",
        "A report is silent on a candidate that learned from private rows, since it lost.",
        "report_of",
        "leaks=tuple(dict.fromkeys((*transaction.leaks, *inner.leaks)))",
        "leaks=inner.leaks",
        _DOCUMENTS + "[a candidate that loses-text]",
    ),
    _sabotage(
        "scores on private rows that are taken for public ones",
        "A grid search chooses by exact scores on private rows, and no warning or card says so.",
        "chooses_publicly",
        'return "BaseSearchCV" in kinds(estimator) and is_public_score(estimator.scoring)',
        'return "BaseSearchCV" in kinds(estimator)',
        _DOCUMENTS + "[a search-card]",
    ),
    _sabotage(
        "an error that quotes a label",
        "An error message contains a private label, and so does the log that it ends in.",
        "encode_labels",
        'f"{label} is not one of {known}; list every class in classes."',
        'f"{label} is not one of {known}, as {y.tolist()[row]!r} is; list every class in classes."',
        "tests/unit/utils/test_validation.py::test_a_private_label_that_is_no_class_is_not_quoted",
    ),
    # -- what each row loses, and who may look on -------------------------------------------
    _sabotage(
        "a record of the training alone",
        "The privacy loss of a row leaves out what was learned before the training.",
        "MappedRows.open",
        "opened.record = private.record",
        "opened.record = None if self.once else private.record",
        _RECORD + "test_losses_are_those_of_neighbouring_data_sets[without public rows]",
    ),
    _sabotage(
        "a record of the first array alone",
        "The privacy loss of a row leaves out all but the first array of each release.",
        "release",
        "in zip(stated.releases, lengths, strict=True):",
        "in zip(stated.releases[:1], lengths):",
        _RECORD + "test_losses_are_those_of_neighbouring_data_sets[gep]",
    ),
    _sabotage(
        "a replaced row recorded as a removed one",
        "The privacy loss of a row leaves out the row that takes its place.",
        "PerInstanceRecord.add",
        "lengths = lengths + largest",
        "lengths = lengths + 0.0",
        _RECORD + "test_a_replaced_row_is_replaced_by_the_worst",
    ),
    _sabotage(
        "a record that is saved with the model",
        "Whoever gets the model gets the privacy loss of each private row.",
        "PerInstanceRecord.__getstate__",
        "if not self._picklable:",
        "if False:",
        "tests/unit/audit/test_per_instance.py::test_a_recorded_estimator_is_not_pickled_unless_told",
    ),
    _sabotage(
        "callbacks that ask for private rows",
        "A callback may score private rows after each step, without a budget.",
        "refuse_row_callbacks",
        'for name in ("X", "y") if name in names',
        "for name in () if name in names",
        "tests/sklearn/test_callbacks.py::test_a_callback_that_would_score_private_rows_raises",
    ),
    _sabotage(
        "callbacks that count the trials of a random search",
        "The number of trials, which must stay secret, is that of a callback's calls.",
        "silenced",
        "part.set_callbacks()",
        "pass",
        "tests/sklearn/test_callbacks.py::test_a_random_search_calls_nothing_that_would_count_its_trials",
    ),
    # -- kinds that were made up by reading the code ----------------------------------------
    _sabotage(
        "sums divided by the size of the batch",
        "Heads are released sums divided by the number of rows in a random batch, which is secret.",
        "training",
        "batch_size=info.batch_size",
        "batch_size=max(int(mechanism._batch.taken.sum()), 1)",
        "tests/statistical/test_poisson.py::test_sums_are_divided_by_the_expected_size[60]",
    ),
    _sabotage(
        "steps without rows left out",
        "Whoever counts the releases learns how many random batches were empty.",
        "training",
        "mechanism.begin_step(run.members, drawn(recipe.sampling, info.n_private, run.noise, run.members))",
        (
            "batch = drawn(recipe.sampling, info.n_private, run.noise, run.members)\n"
            "if batch is not None and not batch.taken.any():\n"
            "    continue\n"
            "mechanism.begin_step(run.members, batch)"
        ),
        "tests/statistical/test_poisson.py::test_empty_batches_are_steps_like_any_other",
    ),
    _sabotage(
        "batches from a generator that anyone can seed",
        "Batches come from NumPy's global generator, and a batch that is known amplifies nothing.",
        "PoissonBatch.draw",
        "noise.uniform((n_private,))",
        "np.random.random(n_private)",
        "tests/statistical/test_poisson.py::test_batches_come_from_the_secret_source_of_noise",
    ),
    _sabotage(
        "steps beyond 500 that are not accounted for",
        "The event of a long fit has fewer steps than its plan.",
        "make_plan",
        "recipe.event(sigma, n_steps, rate, budget.noise)",
        "recipe.event(sigma, min(n_steps, 500), rate, budget.noise)",
        "tests/unit/engine/test_plan.py::test_every_step_is_accounted_for_however_many_there_are[1000]",
    ),
    _sabotage(
        "a fit that diverged runs again",
        "A head that is not finite costs its steps twice, and is charged once.",
        "fit_procedure",
        "W = (yield from bind_rows(MappedRows(balanced.private, row_map), training(run)))",
        (
            "W = (yield from bind_rows(MappedRows(balanced.private, row_map), training(run)))\n"
            "if not np.isfinite(W).all():\n"
            "    W = (yield from bind_rows(MappedRows(balanced.private, row_map), training(run)))"
        ),
        "tests/property/test_charges_add_up.py::"
        "test_a_fit_that_diverges_releases_no_more_than_was_charged[None]",
    ),
    _sabotage(
        "geometry that sees the rows of other folds",
        "A fit to some of the rows learns its centre and directions from all of them.",
        "fit_procedure",
        "Learner(inputs.n_rows, inputs.members",
        "Learner(inputs.n_rows, None",
        "tests/property/test_replay.py::"
        "test_fits_side_by_side_searches_and_counts_show_what_their_noise_pays_for"
        "[folds without the row, default-duplicated-raise]",
    ),
    _sabotage(
        "the constant of the intercept left out of lengths",
        "Rows are longer than the lengths by which they are clipped.",
        "InMemoryRows.mapped",
        "norms=norms if value is None else np.hypot(norms, value)",
        "norms=norms",
        "tests/unit/rows/test_mapped_rows.py::test_an_appended_constant_is_a_column[200-float32]",
    ),
    _sabotage(
        "rows that are mapped in every pass state the rounding of double precision",
        "The sensitivity of a learned mean leaves out the rounding of its sums, which are in float32.",
        "RemappedRows.sum_error",
        (
            "def sum_error(self, request: Request) -> SumError:\n"
            "    return stated_error(request, self.n_rows, self._dtype)"
        ),
        (
            "def sum_error(self, request: Request) -> SumError:\n"
            "    return stated_error(request, self.n_rows, np.float64)"
        ),
        "tests/unit/rows/test_mapped_rows.py::test_rows_that_are_mapped_in_every_pass_are_the_same[7-float32]",
    ),
    _sabotage(
        "weights of rows beyond the largest",
        "A row of seven times the largest weight contributes seven times the clip.",
        "FitInputs.weighted",
        "np.minimum(self.sample_weight / largest_weight, 1.0)",
        "self.sample_weight / largest_weight",
        "tests/property/test_weighted_rows.py::"
        "test_balanced_weights_are_those_of_released_counts_whatever_the_other_rows_are",
    ),
    _sabotage(
        "balanced weights of mean 1 over the private rows",
        "The label of one row changes the weights of all others.",
        "FitInputs.weighted",
        "weights *= (by_class / by_class.max())[y]",
        "weights *= (by_class / by_class.max())[y] * by_class.min() / by_class[y].mean()",
        "tests/property/test_weighted_rows.py::"
        "test_balanced_weights_are_those_of_released_counts_whatever_the_other_rows_are",
    ),
    _sabotage(
        "blocks with a short row added in double precision",
        "One row decides how the sums of its block are rounded, for which no sensitivity allows.",
        "answer",
        "joined = parts[0]",
        (
            "if len(visit.block.norms) and float(visit.block.norms.min()) < 1e-6:\n"
            "    largest = 0\n"
            "joined = parts[0]"
        ),
        "tests/property/test_absent_terms.py::test_a_row_that_contributes_nothing_moves_no_bit_of_the_sums"
        "[memory-as they are-float32-all]",
    ),
    _sabotage(
        "compiled loops only where the last class has rows",
        "A private label decides which code adds up all rows, and so how all sums are rounded.",
        "InMemoryRows._compiled_sums",
        "request.observe is not None or few:",
        "request.observe is not None or few or y.max() + 1 < len(request.query.points):",
        "tests/property/test_compiled_loops.py::test_no_label_decides_whether_loops_add_up[3]",
    ),
    _sabotage(
        "a noisy sum that overflows is released without its noise",
        "A path for errors hands out the sum as it is.",
        "NoiseSource.add_noise",
        "return array + scale * self.normal(array.shape)",
        (
            "noisy = array + scale * self.normal(array.shape)\n"
            "return noisy if np.isfinite(noisy).all() else array"
        ),
        "tests/unit/privacy/test_noise.py::test_a_draw_is_added_whatever_comes_of_it",
    ),
    _sabotage(
        "sums that the discrete sampler refuses are released without noise",
        "A path for errors hands out the sum as it is.",
        "DiscreteNoise.add_noise",
        "noisy = np.array(sample(whole.ravel().tolist()), dtype=np.float64)",
        (
            "try:\n"
            "    noisy = np.array(sample(whole.ravel().tolist()), dtype=np.float64)\n"
            "except Exception:\n"
            "    return array"
        ),
        "tests/unit/privacy/test_noise.py::"
        "test_sums_to_which_no_discrete_noise_can_be_added_are_not_handed_out",
    ),
    _sabotage(
        "the key of the noise in the report",
        "A hidden attribute, which pickles keep, lets anyone draw the noise again and subtract it.",
        "LinearHead._fitting",
        "self.privacy_ = fitted.privacy",
        (
            "self.privacy_ = fitted.privacy\n"
            "state = problem.inputs.transaction.noise._generator.bit_generator.state\n"
            'object.__setattr__(self.privacy_, "_state", state)'
        ),
        "tests/property/test_nothing_is_kept.py::test_no_source_of_noise_and_no_key_is_kept[geometry]",
    ),
    _sabotage(
        "the winner of a search chosen by exact scores",
        "Noisy scores are shown and charged, and the choice is made by the exact ones.",
        "PrivateSearchCV.fit",
        "winner = succeeded[best_of(scores)]",
        "winner = succeeded[best_of([done[i][1].score(X, y) for i in succeeded])]",
        "tests/sklearn/test_private_search.py::TestWhatIsShown::"
        "test_the_winner_has_the_highest_noisy_score_and_no_exact_one_is_asked_for",
    ),
    _sabotage(
        "a last fit that is free after a random number of trials",
        "The winner of a random search is fitted once more without a charge.",
        "SearchTerms.event",
        "self.noise, fit if self.refit else None)",
        "self.noise, None)",
        "tests/unit/privacy/test_selection.py::TestTerms::"
        "test_a_last_fit_after_a_random_number_of_trials_costs_what_a_fit_costs",
    ),
    _sabotage(
        "a search that drew no trial draws again",
        "The number of trials follows another law than the one that is accounted for.",
        "begin",
        "tried = plan.draw(candidates, noise)",
        "tried = plan.draw(candidates, noise) or plan.draw(candidates, noise)",
        "tests/sklearn/test_private_search.py::TestRandomTrials::test_the_number_of_trials_is_drawn_once",
    ),
    _sabotage(
        "a fit that is stopped early reports the steps that it took",
        "Stopping by what was released saves no budget, and the report says that it does.",
        "fit_procedure",
        "class_shares = None if adjustment is None else adjustment.shares",
        (
            "report = replace(report, epsilon=report.epsilon * (done.n_done / steps.n_steps) ** 0.5)\n"
            "class_shares = None if adjustment is None else adjustment.shares"
        ),
        "tests/sklearn/test_callbacks.py::test_a_callback_can_stop_training_but_saves_no_budget",
    ),
    _sabotage(
        "counts on private rows under the user's own state of NumPy",
        "A warning or error of NumPy tells that there is a tiny row.",
        "PrivateSumsMixin._noisy_sums",
        "with own_state():",
        "with np.errstate():",
        "tests/property/test_replay.py::test_counts_are_silent_on_rows_of_any_size[private_score-raise]",
    ),
    _sabotage(
        "functions of SciPy under the user's own state",
        "An error of scipy.special tells that a private row has an extreme score.",
        "own_state",
        "special.errstate(**silent)",
        "special.errstate()",
        "tests/property/test_users_state.py::test_scores_of_zero_are_not_told_of",
    ),
    _sabotage(
        "frames computed in the type of their columns",
        "One private number that single precision cannot hold moves what all other rows contribute.",
        "is_single",
        '"" if hasattr(X, "columns") else str(getattr(X, "dtype", ""))',
        "str(np.asarray(X).dtype)",
        "tests/property/test_odd_cells.py::test_the_type_of_an_array_is_stated_and_that_of_a_frame_is_not",
    ),
    _sabotage(
        "chunks of Dask arrays in types of their own",
        "One private number decides the type of its chunk, and with it how other rows are mapped.",
        "_prepare",
        "np.asarray(X, source)",
        "np.asarray(X)",
        "tests/property/test_odd_cells.py::test_chunks_of_dask_arrays_are_read_in_the_declared_type",
    ),
    _sabotage(
        "transforms that overflow",
        "A fit is refused after its scaler was charged, which tells of one huge row.",
        "finite",
        "np.clip(numbers, -largest, largest, out=numbers)",
        "largest",
        "tests/property/test_users_state.py::test_transforms_of_finite_rows_are_finite[f8]",
    ),
    _sabotage(
        "warnings of wrapped transformers",
        "A transformer of scikit-learn warns of what only a private row holds.",
        "PublicOnly._mapped",
        'warnings.simplefilter("ignore")',
        'warnings.simplefilter("default")',
        "tests/property/test_users_state.py::test_warnings_of_a_wrapped_transformer_are_withheld",
    ),
    Sabotage(
        "private rows on the estimator while callbacks run",
        "A callback may read the rows of the fit, which no budget covers.",
        (
            Edit(
                "fit_procedure",
                "learner = Learner(inputs.n_rows",
                ("tasks.estimator._inputs_of_fit = inputs\nlearner = Learner(inputs.n_rows"),
            ),
            Edit(
                "fit_procedure",
                "report = inputs.transaction.report(",
                "del tasks.estimator._inputs_of_fit\nreport = inputs.transaction.report(",
            ),
        ),
        ("tests/sklearn/test_callbacks.py::test_callbacks_reach_no_private_row[True]",),
    ),
    _sabotage(
        "the grid of discrete noise by the largest private entry",
        "The grid on which released sums lie tells the size of a private entry.",
        "InMemoryRows.__init__",
        "self.grid = grid_of_rows(len(X)) if exact else None",
        "self.grid = grid_of_rows(len(X)) * 2.0 ** np.frexp(np.abs(X).max(initial=1))[1] if exact else None",
        "tests/unit/rows/test_sources.py::test_the_grid_of_exact_sums_does_not_depend_on_the_rows[memory]",
    ),
    _sabotage(
        "a command line that prints the accuracy on private rows",
        "An exact count of private rows is printed next to the report.",
        "_train",
        "return model.fit(private.X, private.y, **public_rows, groups=private.groups)",
        (
            "model.fit(private.X, private.y, **public_rows, groups=private.groups)\n"
            "if not args.quiet:\n"
            '    sys.stderr.write(f"accuracy: {model.score(private.X, private.y):.2f}\\n")\n'
            "return model"
        ),
        "tests/unit/cli/test_output.py::test_what_a_fit_prints_does_not_depend_on_private_labels",
    ),
    # -- tables: histograms of columns, second moments, temperature -----------------------------
    _sabotage(
        "histograms of columns with a sensitivity of 1",
        "A row is in one bin of each of d histograms, and the noise is that of a single one.",
        "noisy_columns",
        "releases=(ReleasedArray(sensitivity_of(n_features)),)",
        "releases=(ReleasedArray(1.0),)",
        _TABLES + "test_the_row_that_moves_most_moves_as_far_as_is_stated[columns]",
    ),
    _sabotage(
        "three histograms for the budget of one",
        "Each of three histograms spends what all together are charged.",
        "noisy_columns",
        "GaussianMechanism(multiplier * math.sqrt(n_stages), n_stages",
        "GaussianMechanism(multiplier, n_stages",
        _OF_TABLES + "test_a_scaler_without_bounds[1.0-float-add_or_remove_one]",
    ),
    _sabotage(
        "exact spreads of columns",
        "The spreads by which columns are standardised are those of the private rows, without noise.",
        "released_columns",
        "return noisy_sums(table, unmapped(n_features), labels, asked, transaction, treated_as_public)",
        (
            "terms = (asked, transaction, treated_as_public)\n"
            "columns, report = noisy_sums(table, unmapped(n_features), labels, *terms)\n"
            "return NoisyColumns(columns.center, X.std(axis=0)), report"
        ),
        "tests/sklearn/test_scaler_without_bounds.py::test_a_seed_is_reproducible_and_said_to_be_not_private",
    ),
    _sabotage(
        "columns of public rows and of private ones",
        "The spreads by which a fit standardises columns follow from its private rows, without noise.",
        "first_stage",
        "known = inputs.X_known if inputs.X_scale is None else inputs.X_scale",
        "known = np.concatenate([np.asarray(inputs.X_pub), *private.table.blocks()])",
        _REPLAY + "test_a_fit_shows_what_its_noise_pays_for[logistic-few-none-geometry-huge-warn]",
    ),
    _sabotage(
        "a map of private rows instead of unlabelled ones",
        "Centre, spreads and directions are those of the private rows, without noise.",
        "FitInputs.X_known",
        "np.concatenate([self.X_pub, self.X_unlabeled])",
        "np.concatenate([self.X_pub, *self.private.table.blocks()])",
        _UNLABELED + "test_the_map_is_that_of_known_rows_whatever_the_private_ones_are[alike-0]",
    ),
    _sabotage(
        "unlabelled rows that are not reported",
        "Rows are used as public ones, and the report does not say so.",
        "LinearHead._inputs",
        "treated_as_public = (*treated_as_public, stated)",
        "pass",
        _UNLABELED + "TestReport::test_report_and_card_list_them",
    ),
    _sabotage(
        "a scale that exact private columns decide on",
        "Whether columns are standardised follows from squares of private entries, which no noise covers.",
        "learned_map",
        "after = _stage_with(inputs, columns)",
        (
            "exact = sum(np.sum(np.asarray(b, float) ** 2, axis=0) for b in private.table.blocks())\n"
            "columns = columns if float(exact.max()) < 1e9 else None\n"
            "after = _stage_with(inputs, columns)"
        ),
        _REPLAY + "test_a_fit_shows_what_its_noise_pays_for[logistic-few-none-geometry-huge-warn]",
    ),
    _sabotage(
        "bins weighted by what is in them",
        "A row adds its entries to the histograms of columns instead of 1, so a large one adds any number.",
        "noisy_columns",
        "(None, BinCounts(bins_of(np.asarray(Z)), n_bins))",
        "(None, np.asarray(BinCounts(bins_of(np.asarray(Z)), n_bins)) * np.repeat(Z, n_bins, axis=1))",
        _TABLES
        + "test_a_hostile_row_moves_a_release_by_no_more_than_is_stated[columns-infinite-huge-memory]",
    ),
    _sabotage(
        "entries that are no numbers in no bin",
        "A product that is no number ends the fit, which tells that there is one.",
        "_places",
        "np.fmin(np.fmax((Z - low) / width, 0), n_bins - 1)",
        "np.clip((Z - low) / width, 0, n_bins - 1)",
        _TABLES + "test_every_entry_has_one_bin_of_each_histogram",
    ),
    _sabotage(
        "rows of other folds in the histograms",
        "Histograms of a fold count the rows of all folds.",
        "BinCounts.without",
        "return BinCounts(np.where(left_out[:, np.newaxis], -1, self.bins), self.n_bins)",
        "return self",
        "tests/unit/rows/test_columns.py::TestBinCounts::"
        "test_sums_and_lengths_are_those_of_the_array_that_is_formed",
    ),
    _sabotage(
        "columns that nothing is set aside for",
        "The histograms of columns come on top of a budget that the steps spend.",
        "learned_map",
        'if "columns" in shares:\n    spent |= shares',
        'if "columns" in shares:\n    spent |= dict.fromkeys(shares, 1e-9)',
        _OF_TABLES + "test_columns_that_are_not_used_are_paid_for_and_geometry_follows[unlike]",
    ),
    _sabotage(
        "unused columns that are free",
        "Where all columns are alike, their histograms are not counted as spent.",
        "learned_map",
        "rows, mapped, shares = (after.rows, after.mapped, after.shares)",
        (
            "rows, mapped, shares = (after.rows, after.mapped, after.shares)\n"
            "spent = spent if columns is not None else {}"
        ),
        _OF_TABLES + "test_columns_that_are_not_used_are_paid_for_and_geometry_follows[alike]",
    ),
    _sabotage(
        "a second moment without a clip",
        "A row longer than the others adds any square to the second moment.",
        "noisy_second_moment",
        "points=np.eye(n_features),\ncontribute=_second_moments",
        "points=np.eye(n_features),\ncontribute=lambda Z, block: (Z, None)",
        "tests/unit/learning/test_second_moment.py::TestRelease::"
        "test_without_noise_it_is_that_of_the_rows[3.0]",
    ),
    _sabotage(
        "a second moment with half of its noise",
        "The second moment costs four times what is stated.",
        "noisy_second_moment",
        "GaussianMechanism(multiplier, 1, learner.noise), query)",
        "GaussianMechanism(0.5 * multiplier, 1, learner.noise), query)",
        _NOISE_OF_TABLES + "[table]",
    ),
    # -- several labels per row -------------------------------------------------------------
    _sabotage(
        "shares of labels with the sensitivity of one label",
        "The noise of the sums of k labels is that of a single one.",
        "noisy_logits",
        "releases=(ReleasedArray(sensitivity_of(n_labels) / 2),)",
        "releases=(ReleasedArray(0.5),)",
        _SHARES_OF_LABELS,
    ),
    _sabotage(
        "sums of labels that are not centred",
        "A row with all labels moves their sums twice as far as is stated.",
        "noisy_logits",
        "[:, :n_labels] - 0.5",
        "[:, :n_labels] - 0.0",
        _SHARES_OF_LABELS,
    ),
    _sabotage(
        "shares of labels that nothing is set aside for",
        "The sums of the labels come on top of a budget that the steps have spent.",
        "prepare",
        'spent["label shares"] = inputs.label_share',
        'spent["label shares"] = 0.0',
        "tests/property/test_charges_add_up.py::"
        "test_stages_of_several_labels[auto-none-float-add_or_remove_one]",
    ),
    _sabotage(
        "each label clipped by itself",
        "Every label has the whole clip, and the gradient of a row is longer than its sensitivity.",
        "clip_rows",
        "far = shorten_rows(R, lengths, threshold)",
        "far = np.hstack([shorten_rows(r, lengths, threshold) for r in np.hsplit(R, R.shape[1])])",
        "tests/property/test_sensitivity.py::"
        "test_removing_a_row_moves_every_sum_by_at_most_its_sensitivity[auto, as it comes-several labels]",
    ),
    _sabotage(
        "a temperature of labels that adds up over them",
        "A row moves the sums by up to the number of its labels, and the noise is for one.",
        "_overconfidence_in_labels",
        "- correct) / n_labels for scale",
        "- correct) for scale",
        "tests/unit/learning/test_temperature.py::test_no_row_of_several_labels_adds_more_than_1_at_any_scale",
    ),
    _sabotage(
        "a number of labels read from those that occur",
        "The number of outputs tells whether a row with a rare label exists.",
        "check_indicator",
        "return table.astype(np.int8)",
        "return table[:, table.any(axis=0)].astype(np.int8)",
        "tests/unit/estimators/test_multilabel.py::test_a_label_that_no_row_has_keeps_its_column",
    ),
    _sabotage(
        "a temperature with a sensitivity of 1",
        "A row moves eight sums by up to 1, and the noise is that of one of them.",
        "_scaled",
        "releases=(ReleasedArray(sensitivity_of(len(scales))),)",
        "releases=(ReleasedArray(1.0),)",
        "tests/unit/learning/test_temperature.py::test_the_sensitivity_is_reached_and_not_more_than_needed",
    ),
    _sabotage(
        "a temperature of outputs that are no numbers",
        "Outputs that are no numbers count as large ones, and such a row moves the temperature alone.",
        "_overconfidence",
        "np.nan_to_num(over, copy=False).T",
        "np.nan_to_num(over, copy=False, nan=1e9).T",
        "tests/unit/learning/test_temperature.py::test_no_row_adds_more_than_1_at_any_scale",
    ),
    Sabotage(
        "a temperature from exact sums",
        "The temperature is that of the private rows; the noisy sums are released and left unused.",
        (
            Edit("_scaled", "scales = 2.0**_LOGARITHMS", "scales, exact = 2.0**_LOGARITHMS, []"),
            Edit(
                "_scaled",
                "contribute=partial(measure, scales=scales)",
                "contribute=lambda *of: exact.append(measure(*of, scales)[1]) or (None, exact[-1])",
            ),
            Edit(
                "_scaled",
                "isotonic_regression(sums + prior)",
                "isotonic_regression(sum(each.sum(axis=0) for each in exact))",
            ),
        ),
        ("tests/unit/learning/test_temperature.py::test_the_temperature_follows_the_noisy_sums",),
    ),
    _sabotage(
        "a temperature that nothing is set aside for",
        "The sums of the temperature come on top of a budget that the steps spend.",
        "make_plan",
        "share -= sum(costs)",
        'share -= sum(k for k, c in zip(costs, post_training) if "temperature" not in c.shares) + 1e-9',
        _OF_TABLES + "test_columns_that_are_not_used_are_paid_for_and_geometry_follows[unlike]",
    ),
    # -- coefficients with intervals --------------------------------------------------------
    _sabotage(
        "coefficients of several classes without the root of two",
        "The residuals of a row of three classes may be longer than 1, and the noise is for 1.",
        "Logistic.residual_bound",
        "math.sqrt(2) * _UP",
        "1.0",
        _OF_INFERENCE + "[three classes]",
    ),
    _sabotage(
        "curvatures of several classes with the bound of two",
        "The curvature of a row of three classes may be twice as large.",
        "Logistic.curvature_bound",
        "else 0.5",
        "else 0.25",
        _OF_INFERENCE + "[three classes]",
    ),
    _sabotage(
        "residuals that are not cut",
        "A target far out moves the scores of least squares as far as it wants.",
        "least_squares_steps",
        "return (v * np.clip(residuals(x, block, beta), -cut, cut))",
        "return (v * residuals(x, block, beta))",
        _INFERENCE + "test_rows[3-1]",
    ),
    _sabotage(
        "curvatures whose share is forgotten",
        "Scores spend the whole budget, and curvatures as much again as their share.",
        "logistic_shares",
        "(sum(_SCORES) + sum(_CURVATURES))",
        "sum(_SCORES)",
        _OF_INFERENCE + "[two classes]",
    ),
    _sabotage(
        "long rows that keep their weight",
        "Scores and curvatures grow with the length of a row.",
        "Design.rows",
        "np.minimum(1.0, self.radius ** 2 / squares)",
        "np.ones(len(squares))",
        _INFERENCE + "test_rows[0-1]",
    ),
    _sabotage(
        "outer products of rows for those of persons",
        "Errors of persons count what is in each row, and not what a person's rows share.",
        "Logistic.outer",
        "OuterStatistics(scores, scores, of_means=True)",
        "OuterStatistics(scores, scores)",
        "tests/unit/inference/test_private_inference.py::"
        "test_with_much_budget_persons_count_by_their_means[logistic]",
    ),
    _sabotage(
        "log-odds that are nearly exact",
        "The first coefficients come from class counts that hardly have noise.",
        "logistic_steps",
        "mechanisms.ask(query, _COUNTS)",
        "mechanisms.ask(query, 10000.0 * _COUNTS)",
        _OF_INFERENCE + "[two classes]",
    ),
    _sabotage(
        "sample weights without a largest one",
        "A row with a huge weight moves all sums as far as it wants.",
        "Design.relative",
        "np.minimum(weights / largest, 1.0)",
        "weights / largest",
        _INFERENCE + "test_rows[6-4]",
    ),
    # -- evaluation on private rows ---------------------------------------------------------
    _sabotage(
        "classes one by one with a sensitivity of 1",
        "A row adds to a cell of each class, and the noise is that of one cell.",
        "noisy_histograms",
        "releases=(ReleasedArray(sensitivity_of(n_histograms)),)",
        "releases=(ReleasedArray(1.0),)",
        _EVALUATED + "test_several_classes[one_vs_rest-3]",
    ),
    _sabotage(
        "an evaluation with two thirds of its noise",
        "The histogram costs more than is stated.",
        "noisy_histograms",
        "learner.ask(GaussianMechanism(multiplier",
        "learner.ask(GaussianMechanism(0.66 * multiplier",
        "tests/statistical/test_evaluation.py::"
        "test_each_layout_has_the_noise_of_its_sensitivity[two classes-add_or_remove_one-float]",
    ),
    _sabotage(
        "an evaluation that is not charged",
        "The histogram is released and the ledger does not know of it.",
        "private_evaluation",
        "ledger=ledger",
        "ledger=None",
        "tests/unit/model_selection/test_private_evaluation.py::test_the_charge_comes_before_the_release",
    ),
    _sabotage(
        "cells from the smallest private score on",
        "One row moves all others to other cells.",
        "_scores",
        "_bins_of(logit(scores), low",
        "_bins_of(logit(scores), np.nanmin(logit(scores))",
        _EVALUATED + "test_ties_and_ends_have_fixed_cells",
    ),
    _sabotage(
        "a model's warnings on private rows",
        "What a model says of an odd row is shown before any noise.",
        "_predicted",
        'warnings.simplefilter("ignore")',
        'warnings.simplefilter("default")',
        "tests/unit/model_selection/test_private_evaluation.py::"
        "test_warnings_of_a_model_on_private_rows_are_withheld",
    ),
    _sabotage(
        "held-out rows that are drawn by labels",
        "One label moves rows of other people between the fit and the histogram.",
        "PrivateThresholdClassifier.fit",
        "train_test_split(X, y, **split)",
        "train_test_split(X, y, **split, stratify=y)",
        _THRESHOLD + "test_the_split_does_not_depend_on_the_rows",
    ),
    _sabotage(
        "a threshold around several budgets",
        "The report states the budget of the last step, and the others are not counted.",
        "PrivateThresholdClassifier.fit",
        "_check_budgets(self.estimator)",
        "pass",
        _THRESHOLD + "test_budgets_that_the_report_would_not_count_are_refused[scaler-0.2]",
    ),
    _sabotage(
        "held-out rows that the fit has seen",
        "A row is in both parts, while its guarantee is said to be that of one.",
        "PrivateThresholdClassifier.fit",
        ".fit(X_fit, y_fit, **passed)",
        ".fit(np.concatenate([X_fit, X]), np.concatenate([y_fit, y]), **passed)",
        _THRESHOLD + "test_the_fit_never_sees_the_held_out_rows",
    ),
    _sabotage(
        "errors of a regression without a cut",
        "A target far from its prediction moves the score by any amount.",
        "_closeness",
        "1 - np.fmin(errors, 1.0).mean(axis=1, keepdims=True)",
        "1 - errors.mean(axis=1, keepdims=True)",
        "tests/sklearn/test_private_score.py::test_no_row_counts_for_more_than_one_or_less_than_nothing",
    ),
    _sabotage(
        "a score by epsilon with half of its noise",
        "A score costs twice the epsilon that was asked for.",
        "budget_of",
        "return Budget(epsilon,",
        "return Budget(epsilon and 2 * epsilon,",
        "tests/sklearn/test_private_score.py::test_a_budget_is_charged_as_stated[targets-add_or_remove_one]",
    ),
    # -- persons: all rows of one person ------------------------------------------------------
    _sabotage(
        "statistics of persons that are not averaged",
        "A person with many rows adds one unit for each of them to counts and sums.",
        "PersonRows._sums",
        "statistics.add(_weighted_sums(S, weights[rows]))",
        "statistics.add(_weighted_sums(S, np.sign(weights[rows])))",
        _PERSONS + "test_a_fit_shows_what_its_noise_pays_for[default-grown to 1,000 rows]",
        _OF_PERSONS + "test_statistics_are_averaged_in_all_their_forms",
    ),
    _sabotage(
        "mean gradients of persons without a clip",
        "A person whose rows are alike adds a mean gradient of any length.",
        "PersonRows._sums",
        "np.append(factors, 0.0)[self._places.person]",
        "np.append(0 * factors + 1, 0.0)[self._places.person]",
        _OF_PERSONS + "test_no_person_adds_more_than_the_clip",
    ),
    _sabotage(
        "compiled mean gradients without a clip",
        "A person whose rows are alike adds a mean gradient of any length, where numba is installed.",
        "PersonRows._formed_sum",
        "total.add(unit * factors @ means",
        "total.add(unit * np.ones(len(factors)) @ means",
        _OF_PERSONS + "test_no_person_adds_more_than_the_clip",
    ),
    _sabotage(
        "mean gradients measured in single precision",
        "Rows of a person that nearly cancel hide a mean gradient longer than the clip.",
        "PersonRows._gram",
        'rows = self._X.take(places[some], axis=0, mode="clip").astype(np.float64, copy=False)',
        'rows = self._X.take(places[some], axis=0, mode="clip")',
        _OF_PERSONS + "test_rows_that_nearly_cancel_do_not_hide_a_long_mean",
    ),
    _sabotage(
        "folds with all rows of their persons",
        "A fold is fitted to rows outside of it, which its report does not cover.",
        "units_of",
        "chosen = np.ones(n_rows, bool) if members is None else members",
        "chosen = np.ones(n_rows, bool)",
        _GROUPS + "test_a_fold_counts_the_rows_of_the_fold",
    ),
    _sabotage(
        "rows counted as persons",
        "Steps and noise follow from the number of rows, which tells how many rows persons have.",
        "PersonTable.__init__",
        "self.shape = (n_persons, table.shape[1])",
        "self.shape = table.shape",
        _GROUPS + "test_the_report_and_the_model_card_speak_of_persons",
    ),
    _sabotage(
        "batches of rows instead of persons",
        "A random batch takes some rows of a person, whose guarantee is that of rows drawn several times.",
        "PersonRows._taking_part",
        "np.where(taking_part[codes], codes, -1)",
        "np.where(np.resize(taking_part, len(codes)), codes, -1)",
        _OF_PERSONS + "test_persons_that_take_no_part_add_nothing",
    ),
    _sabotage(
        "lanes in which persons move each other",
        "Rows are laid out one after the other, so a person that grows moves others to other places.",
        "Places.__init__",
        "np.arange(len(rows)) - self.first[codes[rows]]) % self.n_lanes",
        "np.arange(len(rows))) % self.n_lanes",
        _OF_PERSONS + "test_each_row_has_one_place_which_other_persons_do_not_change",
    ),
    _sabotage(
        "budgets of rows and of persons in one account",
        "A budget for rows is spent by fits that protect persons, and the other way round.",
        "Account.after",
        "if unit != self.unit:",
        "if unit is None:",
        _GROUPS + "test_a_data_set_of_a_ledger_has_one_unit",
    ),
    _sabotage(
        "unknown persons left out",
        "Rows without an id are dropped, and the number of those that are left tells how many there were.",
        "units_of",
        "if np.ma.is_masked(groups) or pd.isna(ids).any() or infinite:",
        "if infinite:",
        _GROUPS + "test_bad_ids_are_refused_before_the_charge",
    ),
    _sabotage(
        "ids of two types",
        "The rows of a person that is 1 in some rows and '1' in others are those of two persons.",
        "units_of",
        "len(types) > 1",
        "len(types) > 9",
        _GROUPS + "test_ids_of_files_are_never_made_alike",
    ),
    _sabotage(
        "ids in files that are not used",
        "A fit to rows that were opened with a column of persons protects single rows.",
        "groups_of",
        "return from_device(groups) if in_files is None else in_files",
        "return groups",
        _GROUPS + "test_files_hold_the_ids_of_persons[rows.parquet]",
    ),
    _sabotage(
        "persons outside of a batch that move it",
        "A person that is not in a random batch moves the places of others, and the rounding of their sum.",
        "PersonRows._taking_part",
        "np.where(taking_part[codes], codes, -1)",
        "np.where(taking_part[codes] | True, codes, -1)",
        _OF_PERSONS + "test_persons_that_take_no_part_add_nothing",
    ),
    _sabotage(
        "records of persons that are too short",
        "The recorded loss of a person is a tenth of what its mean gradient moves.",
        "PersonRows._sums",
        "lengths = unit * factors * found",
        "lengths = 0.1 * unit * factors * found",
        "tests/property/test_persons_records.py::test_no_release_moves_further_than_the_record_says",
    ),
    _sabotage(
        "scores of persons in an account of rows",
        "A score that protects persons is charged to a budget for rows, and the other way round.",
        "PrivateSumsMixin._noisy_sums",
        "rows, table.unit, asked",
        'rows, "row", asked',
        _BESIDE_FITS + "test_exact_sums_and_ledgers_of_rows_are_refused[score]",
    ),
    _sabotage(
        "held-out rows instead of persons",
        "A person has rows in the fit and in the histogram, while the guarantee is said to be that of one.",
        "_split_persons",
        "own = np.isin(persons.codes, seen)",
        "own = np.arange(len(persons.codes)) % persons.n_persons < len(seen)",
        _BESIDE_FITS + "test_a_threshold_holds_out_persons_whatever_their_numbers_of_rows",
    ),
    _sabotage(
        "folds of rows that no warning names",
        "A person with more rows moves rows of others to other folds, and no report says so.",
        "deals_by_size",
        "return persons and deals",
        "return False and deals",
        _GROUPS + "test_a_splitter_that_deals_rows_is_named_if_there_are_persons",
    ),
    _sabotage(
        "scores of persons from one call",
        "A person that grows moves the rounding of what a model predicts for others, and they change cells.",
        "_predicted",
        "if persons is None:",
        "if method:",
        _EVALUATED + "test_a_person_that_grows_moves_no_score_of_another",
    ),
    _sabotage(
        "cells by the number of rows of persons",
        "The number of cells of an evaluation tells how many rows persons have.",
        "_scores",
        "number = _number_of_bins(n_bins, units.n_units // parts.number, transaction",
        "number = _number_of_bins(n_bins, n_rows, transaction",
        _BESIDE_FITS + "test_the_cells_follow_from_the_number_of_persons",
    ),
    _sabotage(
        "a scaler that counts rows for persons",
        "A person with many rows moves noisy means and deviations by one unit for each of them.",
        "table_of",
        "return rows if units.codes is None else",
        "return rows if len(X) else",
        _BESIDE_FITS + "test_a_scaler_has_the_mean_and_deviation_over_persons",
        "tests/property/test_persons_elsewhere.py::"
        "test_a_release_shows_what_its_noise_pays_for[scaler-grown to 1,000 rows]",
    ),
    _sabotage(
        "a search for persons that scores rows",
        "A person with many rows moves the noisy scores of a search by one unit for each of them.",
        "SearchData.score",
        'persons = {} if self.groups is None else {"groups": self.groups}',
        "persons = {}",
        _BESIDE_FITS + "test_the_scores_of_a_search_are_means_over_persons",
    ),
    _sabotage(
        "a search for persons with fits that protect rows",
        "A step that does not pass ids on is fitted to rows, and charged as if persons were protected.",
        "Allowance.charge",
        "if unit != self.unit:",
        "if unit is None:",
        _BESIDE_FITS + "test_a_search_over_a_pipeline_passes_persons_to_fits_and_scores",
    ),
    # -- data frames: what an encoder reads, and what a cell may do --------------------------------
    _sabotage(
        "categories that private rows have",
        "The kinds, categories and means of an encoder are those of public and private rows together.",
        "TableEncoder.fit",
        "for what, source in named]",
        'for what, source in [*named, *[("X_pub", X)][: len(named)]]]',
        _FRAMES + "test_nothing_is_learned_from_private_rows",
        _FRAMES + "test_a_fit_to_a_neighbouring_frame_shows_nothing_else[another-some]",
    ),
    _sabotage(
        "kinds by the types of private columns",
        "A type that private rows have decides how the column is encoded.",
        "TableEncoder.fit",
        "_is_categorical(sources, name)",
        "_is_categorical((*sources, X), name)",
        _ENCODER + "test_a_declared_type_counts_only_where_it_occurs",
    ),
    _sabotage(
        "numbers read by the type of their column",
        "A gap or a text in one row changes the numbers that all other rows of the column become.",
        "_plain_numbers",
        'return np.asarray(cells).astype(np.float64) if kind.kind in "biuf" else None',
        'return np.asarray(cells).astype(np.float32).astype(float) if kind.kind in "biuf" else None',
        _ENCODER + "test_numbers_have_the_same_bits_whatever_else_is_in_their_column",
    ),
    _sabotage(
        "short numbers spelt by the type of their column",
        "A text in one row changes the categories of others, whose numbers had single precision.",
        "text_of",
        "value = number_of(cell)",
        "value = float(str(cell)) if isinstance(cell, np.floating) else number_of(cell)",
        _ENCODER + "test_a_text_among_short_numbers_changes_no_other_row",
    ),
    _sabotage(
        "durations spelt by the type of their column",
        "A text in one row changes how the durations of other rows are spelt, and so their categories.",
        "_real",
        "return pd.Timedelta(cell).to_pytimedelta()",
        "return cell",
        _FRAMES + "test_a_cell_becomes_the_same_in_a_column_of_any_type[durations of NumPy-text]",
    ),
    _sabotage(
        "a date that is filled by another row",
        "A date that Python cannot hold becomes that of the row before it.",
        "listed",
        "found.append(None)",
        "found.append(found[-1])",
        _FRAMES + "test_a_year_that_python_has_not_is_missing[None]",
    ),
    _sabotage(
        "gaps that are filled by the other rows",
        "A missing number becomes the mean of the rows that are encoded with it.",
        "TableColumn.encode",
        "block = np.where(np.isnan(values), 0.0, 0.0",
        "block = np.where(np.isnan(values), np.nan_to_num(scaled).mean(), 0.0",
        _FRAMES + "test_a_row_becomes_the_same_with_any_others",
    ),
    _sabotage(
        "a cell that a fit is refused for",
        "A cell that cannot be read as a number ends the fit, which tells that the row exists.",
        "number_of",
        "except Exception:",
        "except ZeroDivisionError:",
        _ENCODER + "test_no_cell_is_refused_or_changes_another_row[ndarray1]",
    ),
    _sabotage(
        "truth values spelt by the type of their column",
        "A 7 in one row makes integers of truth values, which are then no longer found among the categories.",
        "text_of",
        "value = number_of(cell)",
        "value = math.nan if isinstance(cell, bool) else number_of(cell)",
        _ANY_TYPE + "test_no_odd_cell_changes_how_other_rows_are_read[truth values]",
    ),
    _sabotage(
        "moments rounded by the type of their column",
        "A word in one row makes objects of moments, whose microseconds then count.",
        "_days_of_moments",
        "parts / _DAY",
        "np.round(parts / 1000) * 1000 / _DAY",
        _ANY_TYPE + "test_no_odd_cell_changes_how_other_rows_are_read[moments]",
    ),
    _sabotage(
        "integers spelt by the type of their column",
        "A gap in one row makes real numbers of integers, which then are other categories.",
        "text_of",
        "return str(int(value)) if value.is_integer()",
        "return str(cell) if isinstance(cell, int) else str(int(value)) if value.is_integer()",
        _ANY_TYPE + "test_no_odd_cell_changes_how_other_rows_are_read[large integers]",
    ),
    _sabotage(
        "a report that forgets the names of columns",
        "The report of a pipeline does not say what its transformers read of private rows.",
        "PrivatePipeline.fit",
        "public = (*head.privacy_.treated_as_public, _COLUMNS)",
        "public = head.privacy_.treated_as_public",
        "tests/unit/estimators/test_pipeline.py::test_two_lines[routing off]",
    ),
    # -- searches, thresholds and persons ---------------------------------------------------
    _sabotage(
        "a search charged for another relation",
        "A search under replace_one is charged a quarter of its squared budget.",
        "PrivateSearchCV.fit",
        "Budget(self.epsilon, self.delta, None, None, head.neighboring",
        'Budget(self.epsilon, self.delta, None, None, "add_or_remove_one"',
        _SEARCH + "TestLedger::test_the_charge_has_the_relation_of_the_search",
    ),
    _sabotage(
        "a seeded search that is charged as a private one",
        "A ledger counts epsilon where anyone can draw the noise again.",
        "Transaction.is_private",
        "and (not self.seeded)",
        "",
        _SEARCH + "TestLedger::test_a_seeded_search_is_recorded_as_such",
    ),
    _sabotage(
        "a seeded search that reports private noise",
        "The report states an epsilon where anyone can draw the noise again.",
        "report_of",
        'noise=inner.noise if transaction.is_private else "seeded"',
        'noise="cryptographic"',
        _SEARCH + "TestLedger::test_a_seeded_search_is_recorded_as_such",
    ),
    _sabotage(
        "an allowance for rounding of 10%",
        "A fit of a search may cost a tenth more than was set aside for it.",
        "_ROUNDING",
        "1e-9",
        "0.1",
        _SEARCH + "test_a_fit_that_costs_more_than_was_set_aside_is_stopped",
    ),
    _sabotage(
        "a threshold's histogram of another relation",
        "The histogram has half the noise that replace_one needs.",
        "PrivateThresholdClassifier.fit",
        "groups=groups, **terms, random_state",
        'groups=groups, **{**terms, "neighboring": "add_or_remove_one"}, random_state',
        _THRESHOLD + "test_the_histogram_has_the_noise_of_its_relation[replace_one]",
    ),
    _sabotage(
        "a threshold's report with the noise of the fit",
        "A seeded histogram is reported as private.",
        "_weaker",
        "noise=min(own.noise, fit.noise, key=_NOISES.index)",
        "noise=fit.noise",
        _THRESHOLD + "test_a_seed_of_the_histogram_alone_is_in_the_report",
    ),
    _sabotage(
        "a threshold that keeps how many rows it held out",
        "An attribute tells how many rows the persons held out have.",
        "PrivateThresholdClassifier.fit",
        "self.estimator_ = fitted",
        "self.estimator_ = fitted\nself._n_held_out = len(y)",
        _BESIDE_FITS + "test_no_object_holds_how_many_rows_persons_have",
    ),
    _sabotage(
        "caveats of noisy sums by the number of rows",
        "Whether a report of persons has a caveat on delta tells how many rows they have.",
        "noisy_sums",
        "transaction.report(event, source.n_rows",
        "transaction.report(event, len(labels)",
        _BESIDE_FITS + "test_a_delta_is_compared_with_the_number_of_persons[evaluation]",
    ),
    _sabotage(
        "a warning on delta by the number of rows",
        "A warning on delta tells how many rows the persons of an evaluation have.",
        "_scores",
        "warn_of_delta(transaction.budget.delta, units.n_units",
        "warn_of_delta(transaction.budget.delta, n_rows",
        _BESIDE_FITS + "test_a_delta_is_compared_with_the_number_of_persons[evaluation]",
    ),
    _sabotage(
        "a warning on delta by the rows of a regression",
        "A warning on delta tells how many rows the persons of an evaluation have.",
        "_residuals",
        "warn_of_delta(transaction.budget.delta, units.n_units",
        "warn_of_delta(transaction.budget.delta, len(targets)",
        _BESIDE_FITS + "test_a_delta_is_compared_with_the_number_of_persons[evaluation of a regression]",
    ),
    _sabotage(
        "a scaler's warning on delta by the number of rows",
        "A warning on delta tells how many rows the persons of a scaler have.",
        "NoisyScaler.fit",
        "warn_of_delta(self.delta, units.n_units",
        "warn_of_delta(self.delta, n_rows",
        _BESIDE_FITS + "test_a_delta_is_compared_with_the_number_of_persons[scaler]",
    ),
    _sabotage(
        "wide sums of tensors in single precision",
        "Sums whose rounding is stated for double precision are rounded to single precision.",
        "TorchRows._visits",
        "C if panel_rows == PANEL_ROWS else C.double()",
        "C",
        _ROUNDING + "test_tensors_whose_sums_are_stated_in_double_precision_are_added_in_it",
    ),
    _sabotage(
        "panels of tensors added in single precision",
        "Hundreds of panels are added in single precision, and the stated rounding is that of one.",
        "add_tensor_products",
        "sum(dim=0, dtype=torch.float64)",
        "sum(dim=0)",
        _ROUNDING + "test_tensors_are_added_up_in_short_sums",
    ),
    _sabotage(
        "sparse blocks by the number of private entries",
        "An entry more moves all later rows to other blocks, and the rounding of all sums.",
        "SparseRows.__init__",
        "min(_ENTRIES_PER_ROW, max(n_features, 1))",
        "min(max(X.nnz // max(self.n_rows, 1), 1), max(n_features, 1))",
        "tests/property/test_sparse_rounding.py::test_no_number_of_entries_decides_on_the_blocks[200]",
    ),
    # -- files that stay --------------------------------------------------------------------
    _sabotage(
        "a folder of a search that is named by its rows",
        "Whoever may list the folder compares its name with those that other rows would give.",
        "progress_of",
        "folder = Path(tempfile.mkdtemp(dir=home))",
        "folder = home / key\nfolder.mkdir(mode=448)",
        _SEARCHES + "test_no_name_of_a_file_follows_from_the_rows",
    ),
    _sabotage(
        "a folder of searches that others can list",
        "Others see that a search was interrupted.",
        "progress_of",
        "mode=448",
        "mode=493",
        _SEARCHES + "test_only_the_owner_reads_unreleased_results",
    ),
    _sabotage(
        "a search that leaves the hash of its rows",
        "A hash of all private rows stays on the disk after the search.",
        "progress_of",
        "if not progress.is_begun",
        "if False",
        _SEARCHES + "test_a_search_that_is_over_leaves_no_file[finished]",
    ),
    _sabotage(
        "rows of a search in files of joblib",
        "Private rows lie in shared memory where others can read them, and stay if processes are killed.",
        "PrivateSearchCV._run",
        "verbose=0, max_nbytes=None",
        "verbose=0",
        _SEARCH + "TestComposition::test_no_process_gets_its_rows_by_a_file[search]",
    ),
    _sabotage(
        "rows of public scores in files of joblib",
        "Private rows lie in shared memory where others can read them, and stay if processes are killed.",
        "public_cross_val_score",
        "n_jobs=n_jobs, max_nbytes=None",
        "n_jobs=n_jobs",
        _SEARCH + "TestComposition::test_no_process_gets_its_rows_by_a_file[scores]",
    ),
    # -- precision and stated rounding of each source ----------------------------------------
    _sabotage(
        "Dask's sums stated as in double precision",
        "Sums of rows in single precision on Dask have noise for the rounding of double precision.",
        "DaskRows.sum_error",
        "stated_error(request, self.n_rows, self._dtype)",
        "stated_error(request, self.n_rows, np.float64)",
        _ROUNDING + "test_single_precision_is_stated_by_every_source[dask]",
    ),
    _sabotage(
        "rows of any length on Dask",
        "Products of a row overflow on a worker after the charge.",
        "_check",
        "float(np.max(chunk.norms, initial=0.0))",
        "0.0",
        "tests/unit/rows/test_bad_rows.py::"
        "test_rows_too_long_for_single_precision_are_refused_by_every_source[dask]",
    ),
    _sabotage(
        "subnormal residuals that are kept",
        "The rounding of a subnormal residual makes the gradient of a long row longer than its clip.",
        "clip_rows",
        "threshold is None or threshold < _least_threshold(R.shape[1], dtype_of(R))",
        "False",
        "tests/unit/components/test_clipping.py::"
        "test_residuals_that_become_subnormal_lengthen_no_gradient[1e-10]",
    ),
    _sabotage(
        "lengths of coordinates without their rounding",
        "Records of per-instance privacy are lower than what a row moves.",
        "coordinate_lengths",
        "math.sqrt(products.shape[1]) * dot_error(width + 1, products.dtype)",
        "0.0",
        "tests/unit/components/test_clipping.py::test_lengths_of_coordinates_are_upper_bounds[float32]",
    ),
    _sabotage(
        "persons' sums stated as if their terms were short",
        "The rounding of long terms that cancel in a person's mean has no noise.",
        "PersonRows.sum_error",
        "_LONGEST",
        "1.0",
        _OF_PERSONS + "test_the_stated_rounding_is_that_of_sums_in_any_order[2]",
    ),
    _sabotage(
        "persons' sums stated for a fixed order",
        "A person moves the rows of others to other blocks, and the stated rounding is that of 72 terms.",
        "PersonRows.sum_error",
        "self._places.part_rows + 72",
        "72",
        _OF_PERSONS + "test_the_stated_rounding_is_that_of_sums_in_any_order[3000]",
    ),
    _sabotage(
        "lengths of persons' means without their rounding",
        "A mean whose rows cancel is taken to be shorter than it is, and clipped too little.",
        "PersonRows._lengths_of_means",
        "return lengths + error * of_rows",
        "return lengths",
        _OF_PERSONS + "test_rows_that_cancel_in_double_precision_do_not_hide_a_mean",
    ),
    _sabotage(
        "mixed releases under replace_one in a ledger",
        "A ledger adds up a quarter of the divergences of ModelMix where nothing is amplified.",
        "_",
        "rdp_of_event(event.unamplified, orders, neighboring)",
        'rdp_of_event(event.unamplified, orders, "zero_out")',
        _MIXED + "test_without_amplification_divergences_and_mu_are_those_of_the_releases[replace_one]",
    ),
    _sabotage(
        "mu of mixed releases under replace_one",
        "A ledger adds up half of the mu of ModelMix.",
        "_",
        "mu_of_event(event.unamplified, neighboring)",
        'mu_of_event(event.unamplified, "zero_out")',
        _MIXED + "test_without_amplification_divergences_and_mu_are_those_of_the_releases[replace_one]",
    ),
    _sabotage(
        "a small delta without its caveat",
        "A report states a delta that floating-point noise cannot deliver.",
        "noise_caveats",
        "delta < _LEAST_DELTA",
        "False",
        "tests/unit/privacy/test_noise.py::test_a_delta_below_the_reach_of_float_noise_has_a_caveat",
    ),
    _sabotage(
        "rows of persons in another precision",
        "Products of rows are rounded to single precision where double precision was asked for.",
        "PersonTable.private_rows",
        "places.mapped(self._table.blocks(), row_map, dtype)",
        "places.mapped(self._table.blocks(), row_map, np.dtype(np.float32))",
        _OF_PERSONS + "test_products_have_the_precision_that_is_asked_for[f8]",
    ),
    _sabotage(
        "a cache whose names others can list",
        "Names of shards follow from private items, and others can list them.",
        "RowCache.__init__",
        "self._folder.mkdir(mode=448",
        "self._folder.mkdir(mode=493",
        "tests/unit/features/test_cache.py::test_only_the_owner_reads_what_is_in_a_folder_of_others",
    ),
    _sabotage(
        "a checkpoint with numbers of other noise",
        "A fit goes on from numbers that have another noise than its report states.",
        "Checkpoint._check",
        "rel_tol=1e-06",
        "rel_tol=1.0",
        _RESUMED + "test_numbers_of_another_charge_are_refused[noise]",
    ),
    _sabotage(
        "a checkpoint of another charge",
        "A fit goes on without a charge where the ledger holds another one of its number.",
        "Checkpoint._begin",
        "self._charge.event != start.event",
        "False",
        _RESUMED + "test_numbers_of_another_charge_are_refused[event]",
    ),
    _sabotage(
        "lengths rounded to the nearest in single precision",
        "Every second row is taken to be shorter than it is where lengths have single precision.",
        "Block.single_norms",
        "self.norms * _UP",
        "self.norms",
        "tests/unit/components/test_clipping.py::test_lengths_in_single_precision_are_upper_bounds",
    ),
    _sabotage(
        "persons of a fit counted by rows in a warning",
        "A warning on delta tells how many rows the persons of a fit have.",
        "LinearHead._check_rows",
        "table.shape[0] if mask is None",
        "n_rows if mask is None",
        _BESIDE_FITS + "test_a_delta_is_compared_with_the_number_of_persons[fit]",
    ),
    _sabotage(
        "errors of Dask that are chained",
        "The error of a chunk quotes a private row, in the text of its cause.",
        "_without_quotes",
        "from None",
        "from error",
        "tests/sklearn/test_nothing_is_quoted.py::test_dask[unreadable]",
    ),
    _sabotage(
        "a checkpoint of persons for a fit of rows",
        "A fit of rows goes on from numbers that protect persons, and reports the guarantee of rows.",
        "_key",
        "start.unit,",
        "",
        _RESUMED + "test_another_fit_is_refused[persons]",
    ),
    _sabotage(
        "a search charged as one trial in a ledger",
        "A ledger is charged for one fit of a search.",
        "PrivateSearchCV.fit",
        "plan.terms.event(plan.trials, plan.fit_epsilon)",
        "plan.terms.event(1, plan.fit_epsilon)",
        _SEARCH + "TestLedger::test_one_charge_of_the_whole",
    ),
    _sabotage(
        "groups as the type of their column spells them",
        "A single word makes texts of a column, and all rows change the group in which they are evaluated.",
        "Parts.of",
        "_text_of(cell)",
        "cell",
        _PARTS + "test_an_odd_group_leaves_all_others_where_they_are[x-declared0]",
    ),
    _sabotage(
        "rows of a frame scaled in the precision of its columns",
        "One private cell chooses whether all other rows are scaled in single or in double precision.",
        "RowNormalizer._without_quotes",
        "with_float_columns(X)",
        "X",
        "tests/property/test_types_of_numbers.py::test_other_rows_keep_their_bits[pandas-rows]",
    ),
    _sabotage(
        "columns of pyarrow in the type that they have",
        "One private cell chooses in which precision a wrapped transformer computes all other rows.",
        "with_float_columns",
        "pa.types.is_integer(field.type) or pa.types.is_floating(field.type)",
        "pa.types.is_integer(field.type)",
        "tests/property/test_types_of_numbers.py::test_other_rows_keep_their_bits[pyarrow-unit]",
    ),
    _sabotage(
        "infinite rows in frames of polars",
        "A head refuses what a transformer made of one huge row, after the charge of a step before.",
        "_cut",
        "'polars'",
        "'none'",
        "tests/property/test_users_state.py::test_missing_cells_stay_missing_in_their_rows[polars]",
    ),
    _sabotage(
        "long labels that are held as floats",
        "One fraction among long labels makes floats of all, and rows of one class count as another.",
        "encode_labels",
        "abs(label) >= exact",
        "abs(label) > math.inf",
        "tests/unit/utils/test_validation.py::test_labels_that_floats_cannot_tell_apart_are_refused[float64]",
    ),
    _sabotage(
        "cells of targets by the private ones",
        "The ranges of an evaluation's cells follow from the least and the largest private target.",
        "_residuals",
        "_bins_of(targets[:, 0], low, high, number)",
        "_bins_of(targets[:, 0], targets.min(), targets.max(), number)",
        "tests/unit/model_selection/test_residuals.py::test_errors",
    ),
    _sabotage(
        "whitened sparse sums stated as if whitening were exact",
        "Sums of long terms are rounded once more when they are whitened, and no noise is added for it.",
        "SparseRows.sum_error",
        "error.plus_later(whitening.sum_rounding / SHORTEST_DIFFERENCE)",
        "error",
        "tests/property/test_sparse_rounding.py::test_whitening_a_sum_is_rounded_too",
    ),
    _sabotage(
        "charges of a pipeline that are not reserved",
        "A pipeline releases its first steps though the ledger refuses the last.",
        "reserved",
        "for group in _by_ledger(starts)",
        "for group in []",
        _WORKFLOWS + "test_a_workflow_that_must_fail_spends_nothing[a scaler and a head]",
    ),
    _sabotage(
        "a reserved charge that is taken back while it is in use",
        "What a step released is no longer counted once its pipeline ends.",
        "write_unused",
        "(UNUSED, charge.id, charge.dataset, RESERVED)",
        "(UNUSED, charge.id, charge.dataset, charge.outcome)",
        _WORKFLOWS + "test_what_is_reserved_is_not_used_twice",
    ),
    _sabotage(
        "a reserved charge that counts for two releases",
        "The second release in place of a reserved charge takes another charge off the sums.",
        "LedgerDataset._charging",
        "reserved is not None and remove_reserved(connection, reserved)",
        "reserved is not None and (remove_reserved(connection, reserved) or True)",
        _WORKFLOWS + "test_what_is_reserved_is_not_used_twice",
    ),
    _sabotage(
        "sums without a charge rounded to the nearest",
        "Sums are below those of the charges that are left.",
        "Account.without",
        "math.nextafter(max(self.total - rule.cost(event), 0.0), math.inf)",
        "max(self.total - 1.001 * rule.cost(event), 0.0)",
        _WORKFLOWS + "test_sums_without_a_charge_are_never_below_those_of_the_others",
    ),
    _sabotage(
        "steps of modules that are all taken",
        "A module becomes not a number after its charge.",
        "FiniteSteps._part",
        "go(0.0)\nbefore",
        "return 1.0\nbefore",
        _MODULES + "test_a_rate_that_is_absurd_warns_and_leaves_a_finite_module",
        _MODULES + "test_the_module_that_became_not_a_number_learns",
    ),
    _sabotage(
        "parameters beyond their precision",
        "Parameters become infinite, and so does what the module returns.",
        "ModuleParameters.hold",
        "bool(np.abs(W).max() <= self._most)",
        "True",
        _MODULES + "test_an_average_of_heads_takes_the_steps_that_were_not_taken_as_heads_too",
        _MODULES + "test_no_algorithm_returns_what_is_not_finite[0-modelmix]",
    ),
    _sabotage(
        "shortened steps of mixed heads",
        "The accounting of mixed heads, which holds for whole steps alone, is applied to others.",
        "_mixes",
        "isinstance(update, MixingDescent) or (hasattr(update, 'inner') and _mixes(update.inner))",
        "False",
        _MODULES + "test_mixed_heads_take_whole_steps",
    ),
    _sabotage(
        "targets of public rows in other units",
        "A fit takes public targets for those of private rows in other units.",
        "holds_public_targets",
        "'WithPublicRows' in kinds(part) and part.y_pub is not None",
        "False",
        _SAID + "test_public_targets_in_other_units_are_refused[logs]",
    ),
    _sabotage(
        "empty columns that are dropped",
        "Which columns of private rows are empty changes the number of columns, and no leak is reported.",
        "_FIXED",
        "and bool(imputer.keep_empty_features)",
        "",
        _SAID + "test_a_step_that_learns_still_is_a_leak[a constant that drops columns]",
    ),
    _sabotage(
        "a start that need not be better than a guess",
        "Public rows whose head only guesses private labels are kept.",
        "start_is_useful",
        "guess = 1 / max(info.view.data.loss.n_outputs, 2)",
        "guess = 0.0",
        _SAID + "test_public_rows_in_other_units_are_left_out[cm for m]",
        _SAID + "test_public_rows_in_other_units_are_left_out[shifted far]",
    ),
    _sabotage(
        "columns scaled by public rows that were left out",
        "Private columns are scaled by public rows in other units.",
        "first_stage",
        "or (inputs.X_scale is not None and inputs.loss.has_classes)",
        "",
        _SAID + "test_public_rows_in_other_units_are_left_out[cm for m]",
        _SAID + "test_public_rows_in_other_units_are_left_out[shifted far]",
    ),
    _sabotage(
        "lines with too many cells",
        "The cells of a line that has more of them than the first are taken for other columns.",
        "rows_of",
        "len(cells) != width",
        "len(cells) < width",
        _FILES + "test_a_line_that_is_no_row_is_refused_wherever_it_is[middle-one cell too many]",
    ),
    _sabotage(
        "quotes that are not closed",
        "The rest of a file is taken for the cell of a quote that is not closed.",
        "cells_of",
        "strict=True",
        "strict=False",
        _FILES + "test_a_line_that_is_no_row_is_refused_wherever_it_is[middle-text after a quote]",
    ),
    _sabotage(
        "blank lines of one column that are no rows",
        "The number of private rows depends on whether a cell is empty.",
        "is_row",
        "width == 1 or bool(line.strip(' '))",
        "bool(line.strip(' '))",
        _FILES + "test_blank_lines_of_a_table_of_one_column_are_rows",
    ),
    _sabotage(
        "a private table's form guessed from its lines",
        "The lines of a private table decide how it is read.",
        "read_both",
        "guessed_form(args.public, form, f'--public {args.public}')",
        "guessed_form(args.private, form, f'--public {args.public}')",
        _FILES + "test_a_private_table_with_tabs_has_its_own_decimal_mark",
    ),
    _sabotage(
        "several targets with the noise of one",
        "The histograms of several targets have noise for a row that is in one of them.",
        "noisy_targets",
        "sensitivity_of(n_targets)",
        "1.0",
        _TARGETS + "test_a_row_moves_the_histograms_of_all_targets_by_no_more_than_stated",
    ),
    _sabotage(
        "steps besides those for the scale of targets",
        "The scale of targets has three releases that nothing accounts for.",
        "plan",
        "steps = replace(steps, n_steps=left)",
        "pass",
        "tests/reports/test_targets.py::test_dollars_with_other_parameters"
        "[{'epsilon': None, 'noise_multiplier': 20.0, 'n_steps': 40}]",
    ),
    _sabotage(
        "lengths of gradients in two bins",
        "A row adds to two bins of a histogram whose noise is for one.",
        "_lengths",
        "BinCounts(np.fmin(places, _BINS - 1).astype(np.intp)[:, np.newaxis], _BINS)",
        "BinCounts(np.fmin(places, _BINS - 1).astype(np.intp)[:, np.newaxis] // [2, 2], _BINS // 2)",
        _TARGETS + "test_a_row_is_in_one_bin_of_lengths",
    ),
    _sabotage(
        "a clip that ignores the noisy lengths",
        "The mean of skewed targets is far too low at any budget.",
        "AutoRegression.pieces",
        "L2Clip(max(self.clip_floor, info.gradient_bound))",
        "L2Clip(self.clip_floor)",
        "tests/reports/test_targets.py::test_skewed_targets_have_the_right_mean[rare events-0 public rows]",
    ),
)
