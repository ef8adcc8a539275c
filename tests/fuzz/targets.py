"""All targets, and their shares of the cases."""

from . import command_line, estimators, files, ledgers, life_cycle
from .harness import Target

TARGETS = (
    Target("rows of a fit", 6, estimators.fit_rows, fits=True),
    Target("parameters of a fit", 10, estimators.fit_parameters, fits=True),
    Target("containers of rows", 2, estimators.fit_containers, fits=True),
    Target("module fits", 1, estimators.fit_modules, fits=True),
    Target("searches", 1, ledgers.check_searches, fits=True),
    Target("life of an estimator", 1.5, machine=life_cycle.life_cycle_machine, fits=True),
    Target("rows to predict", 10, estimators.predict_rows),
    Target("row files", 20, files.check_row_files),
    Target("model files", 17.5, files.check_model_files),
    Target("ledger files", 8, files.check_ledger_files),
    Target("ledger", 3, machine=ledgers.ledger_machine),
    Target("names in a ledger", 6, ledgers.check_ledger_names),
    Target("names of classes and columns", 1, ledgers.check_shown_names, fits=True),
    Target("JSON", 8, files.check_json),
    Target("command line", 5, command_line.check_command_line),
)
