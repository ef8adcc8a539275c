"""The only way from the tests to private names: where each of them is.

``from tests.private_names import Learner`` imports the name when it is needed, so that tests can skip where a
dependency is absent. When code moves, one line changes here. A module may be a name too.
"""

from importlib import import_module
from typing import Any

#: Names by their module. ``here=there`` gives a name a second one, where two modules have the same.
NAMES = {
    "skmixdp": "_resuming",
    "skmixdp._cli": "cli_fit=fit outputs",
    "skmixdp._cli.files": "declared_columns guessed_form read_table",
    "skmixdp._cli.images": "_read_options",
    "skmixdp._cli.labels": "as_classes",
    "skmixdp._cli.main": "main",
    "skmixdp._cli.messages": "InputError in_flags",
    "skmixdp._cli.model_files": "load_model",
    "skmixdp._cli.outputs": "write_together",
    "skmixdp._cli.rows": "read_rows",
    "skmixdp._dask": "DaskRows",
    "skmixdp._engine": (
        "GaussianMechanism LostReleaseError OpenRows Options Plan Recipe Transaction bind_rows draw_batch "
        "drive loop make_plan release release_module=release training transaction"
    ),
    "skmixdp._engine.recording": "KnownRows Observation RecordedRelease recorded_releases",
    "skmixdp._engine.release": "Released",
    "skmixdp._export.sklearn_steps": "plain_step",
    "skmixdp._files": "files_text=text formats streamed temporary",
    "skmixdp._files.blockmap": "BlockMap widen",
    "skmixdp._files.formats": "ArrayFile ArrowFile FORMATS NpyFile ParquetFile TableFile TextFile format_of",
    "skmixdp._files.row_files": "open_rows",
    "skmixdp._files.shards": "array_shard",
    "skmixdp._files.streamed": "StreamedRows",
    "skmixdp._files.temporary": "temporary_memory",
    "skmixdp._files.text": "FileError TextForm",
    "skmixdp._fit": (
        "column_histograms=statistics fit_stage=stage fit_stages=stages noisy_sums_module=sums "
        "procedure_module=procedure"
    ),
    "skmixdp._fit.procedure": "CLEAR_OF_NOISE=_CLEAR",
    "skmixdp._fit.stage": (
        "Data Fit LabelledRows_of_problem=LabelledRows MappedRows PublicRows Stage Steps Weights"
    ),
    "skmixdp._fit.stages": (
        "STAGES geometry_module=geometry labels_module=labels planning=training "
        "public_checks_module=public_checks"
    ),
    "skmixdp._fit.stages.calibration": (
        "_LOGARITHMS _USUAL=_USUAL_SCALE _overconfidence at_shares at_temperature at_temperature_of_rare "
        "recalibrated temperature_share with_student"
    ),
    "skmixdp._fit.stages.columns": (
        "MOST_SPENT NoisyColumns _BINS _bins_between _magnitudes _squares columns_share few_dominate "
        "noisy_columns"
    ),
    "skmixdp._fit.stages.comparison": "PublicShrinkage balance can_balance reliable_balance start_comparison",
    "skmixdp._fit.stages.geometry": (
        "LeadingDirections _second_moments center_of leading_directions map_share moment_map noisy_length "
        "noisy_matrix noisy_mean preconditioner_of second_moment_share"
    ),
    "skmixdp._fit.stages.labels": (
        "TARGET_RELEASES WORTH_OF_LABELS _SIGNED _places_of_targets class_shares count_share noisy_logits "
        "noisy_targets"
    ),
    "skmixdp._fit.stages.mapping": "LENGTH_LIMIT SEARCH_ROUNDS Shares WORTH_OF_LENGTH unmapped",
    "skmixdp._fit.stages.public_checks": (
        "MOST_COUNTED=_MOST_COLUMNS columns_in_other_units start_predicts unit_share"
    ),
    "skmixdp._fit.stages.training": "_lengths",
    "skmixdp._fit.statistics": (
        "Learner Worth comparison_query counts_query expected_losses gains gains_query in_class "
        "sensitivity_of share_for thinned usual_gain"
    ),
    "skmixdp._fit.sums": "noisy_sum",
    "skmixdp._linear": "compiled_loops=loops products",
    "skmixdp._linear.arrays": (
        "largest_entries largest_singular_value orthonormal_columns remove_mean_output row_dots "
        "row_norm_bounds row_norms scale_rows shorten_rows"
    ),
    "skmixdp._linear.losses": (
        "LogisticLoss MultilabelLoss SoftmaxLoss SquaredLoss WeightedLoss classification_loss "
        "predicted_classes with_weights"
    ),
    "skmixdp._linear.products": "NARROW add_products read_ahead row_memory row_products",
    "skmixdp._linear.sums": (
        "BLOCK_ROWS Cascade EXACT PANEL_ROWS SHORTEST_DIFFERENCE SumError UNDERFLOW_PAD any_order dot_error "
        "panel_rows_for sum_error"
    ),
    "skmixdp._papers": "mirror",
    "skmixdp._papers.loss_queries": (
        "CandidateQuery Descent PublicDirections RandomDirections TwoPointQuery public_gradients"
    ),
    "skmixdp._papers.mirror": "PenalizedLoss",
    "skmixdp._papers.modelmix": "accountant",
    "skmixdp._papers.modelmix.accountant": (
        "MAX_ORDER MAX_PRODUCT MAX_SHIFT MIN_WIDTH epsilon_for log_moments log_ratio_moments renyi"
    ),
    "skmixdp._papers.modelmix.wrapping": (
        "L2LinfClip L2LinfClipAt MixingDescent mixed_query mixed_steps mixed_update"
    ),
    "skmixdp._papers.split_query": "SplitQuery clipped_parts",
    "skmixdp._papers.splits": "Centre GradientEmbedding centre_of deviation_norms embedding_of",
    "skmixdp._papers.zeroth_order": "zeroth_order_descent",
    "skmixdp._rows": "blockwise scaling table",
    "skmixdp._rows.blockwise": "InMemoryRows block_size grid_of_rows n_lanes rounds sum_resolution",
    "skmixdp._rows.persons": "PersonTable Places",
    "skmixdp._rows.row_map": "RowMap TargetMap UNCHANGED",
    "skmixdp._rows.scaling": "Columns IQR Whitening columns_of n_groups worth_scaling",
    "skmixdp._rows.source": "Batch BinCounts Block MeanClip OuterStatistics PrivateQuery Request Table",
    "skmixdp._rows.sparse": (
        "SparseRows SparseTable canonical centered_products centered_sparse_rows centered_weighted_sum "
        "part_of whitened_entries"
    ),
    "skmixdp._rows.table": "ArrayTable encode_labels finite_rows from_device special_table",
    "skmixdp._torch": "modules tensors",
    "skmixdp._torch.module_steps": "FiniteSteps",
    "skmixdp._torch.modules": (
        "Direction GradientData GradientRows LabelledRows_of_modules=LabelledRows LossesAt ModuleData "
        "ModuleLoss ModuleParameters ModuleRows Seeded check_forward cross_entropy flat "
        "module_public=public module_rows=rows refuse_quantised select_parameters state_of with_state "
        "working_copy"
    ),
    "skmixdp._torch.modules.forward": "separately",
    "skmixdp._torch.modules.rows": "_LANES _rounded_sums",
    "skmixdp._torch.tensors": "TorchRows TorchTable add_tensor_products full_precision mapped",
    "skmixdp._utils": "files process validation",
    "skmixdp._utils.lazy_imports": "PLACES annex",
    "skmixdp._utils.documents": "Section as_html as_markdown as_text html",
    "skmixdp._utils.files": "sync_folder write_arrays written_whole",
    "skmixdp._utils.process": (
        "in_parallel is_own n_parts no_bars one_thread own_state progress_bar public_code worker_session"
    ),
    "skmixdp._utils.validation": "Allowed Kind Number is_empty respelt suggestion",
    "skmixdp.additive": "_effects _estimators",
    "skmixdp.additive._basis": "Basis Column",
    "skmixdp.additive._estimators": "pieces",
    "skmixdp.additive._knots": (
        "Bins Knots count_error knots_share most_knots noisy_columns_of public_columns"
    ),
    "skmixdp.additive._pairs": "ChosenPairs scores_query",
    "skmixdp.additive._piecewise": "MappedPiecewiseRows centered_piecewise_rows compiled_pieces scipy_pieces",
    "skmixdp.audit._bounds": (
        "epsilon_from_rates mu_from_rates one_run_epsilon one_run_mu one_run_p_value proportion_lower "
        "proportion_upper separation threshold_bound"
    ),
    "skmixdp.audit._claims": "claim_of",
    "skmixdp.audit._fits": "Evidence Fits contribution_lengths evidence_of",
    "skmixdp.audit._membership": "area_under_curve auc_interval",
    "skmixdp.audit._rows": "AuditRows",
    "skmixdp.components.steps": "held_out_losses solution_error",
    "skmixdp.estimators": "_base _problem base_module=_base linear_heads=_linear",
    "skmixdp.estimators._base": "replace_attributes",
    "skmixdp.estimators._saving": "coding saving",
    "skmixdp.estimators._saving.coding": "check_loaded",
    "skmixdp.features": "_base_of_features=_base _extraction",
    "skmixdp.features._base": "load_backend",
    "skmixdp.features._extraction": "RowCache Settings",
    "skmixdp.features._inputs": "as_items",
    "skmixdp.inference": "count_steps=_generalized",
    "skmixdp.inference._tails": "Tail bins_of",
    "skmixdp.inspection._evaluation": "shares_of",
    "skmixdp.inspection._style": "OKABE_ITO",
    "skmixdp.model_selection._evaluation.cells": "NoisyCells _on_simplex interval",
    "skmixdp.model_selection._evaluation.groups": "Parts",
    "skmixdp.model_selection._public": "hold_out",
    "skmixdp.model_selection._search": "private_search",
    "skmixdp.model_selection._search.plan": "Candidates",
    "skmixdp.model_selection._search.resume": "Progress",
    "skmixdp.model_selection._search.trials": "Allowance",
    "skmixdp.preprocessing._leaks": "_enclosing",
    "skmixdp.preprocessing._leaks._rules": "DROPS_FITS LEARNS META_LEARNS ONLY_PARTS",
    "skmixdp.preprocessing._one_cell": "days_of number_of text_of",
    "skmixdp.preprocessing._public_cells": "kind_of",
    "skmixdp.privacy.accounting.composition": "_SLACK",
    "skmixdp.privacy.ledger": "_account _ledger _records _sql _store ledger_module=_ledger",
    "skmixdp.privacy.ledger._account": "Account",
    "skmixdp.privacy.ledger._charging": "charge_together recorded_outcome take_back",
    "skmixdp.privacy.ledger._ledger": "LEDGER",
    "skmixdp.privacy.ledger._ledger_report": "LedgerReport",
    "skmixdp.privacy.ledger._records": "event_from_json event_to_json",
    "skmixdp.privacy.ledger._sql": "add_charge write_account",
}

_PLACES = {
    entry.partition("=")[0]: (module, entry.rpartition("=")[2])
    for module, names in NAMES.items()
    for entry in names.split()
}


def dotted_path(name: str) -> str:
    """The dotted path of a name, or of an attribute of it, for what replaces attributes by their paths."""
    listed, *attributes = name.split(".")
    return ".".join([*_PLACES[listed], *attributes])


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"{name} is not listed in tests/private_names.py")
    module, attribute = _PLACES[name]
    loaded = import_module(module)
    return (
        getattr(loaded, attribute) if hasattr(loaded, attribute) else import_module(f"{module}.{attribute}")
    )
