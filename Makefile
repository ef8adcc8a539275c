# Every target sets up what it needs: .venv in this folder, from constraints.txt.
PYTHON ?= python3
BIN := .venv/bin

# Compiled modules are kept, or each of the tests' processes would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo quick test cores test-all package oldest prerelease fuzz sabotage faults endurance coverage mutants lint docs pages benchmark diffprivlib interpret peers scale utility clean

help:
	@echo "make demo       the examples of the README, and six methods on real digits: results/"
	@echo "make test       the tests, slow ones left out"
	@echo "make quick      the tests that find most mistakes, in less than a minute"
	@echo "make cores      tests of products once more, as on another processor, and in two threads"
	@echo "make test-all   all tests"
	@echo "make package    wheel and source distribution, built, installed and used in a clean environment"
	@echo "make oldest     the core tests with the oldest versions of all dependencies"
	@echo "make prerelease the core tests with pre-releases of all dependencies"
	@echo "make fuzz       50,000 hostile cases on estimators, ledgers, files and the command line; CASES=5000 for fewer"
	@echo "make sabotage   break the guarantee on purpose in many ways; tests must find each"
	@echo "make faults     kills, full disks, races and lost workers, 100 rounds of each: half an hour"
	@echo "make endurance  10,000 fits in one process, and a ledger of 100,000 charges: ten minutes"
	@echo "make coverage   all branches of privacy/ and of the release are tested"
	@echo "make mutants    small faults in what the guarantee rests on are noticed; SAMPLE=200 tries 200 of them"
	@echo "make lint       ruff, mypy and the import contracts"
	@echo "make docs       the code of the documentation runs; its pages are built in docs/_build/html"
	@echo "make pages      the pages of the documentation alone"
	@echo "make benchmark  speed as a ratio to plain matrix products"
	@echo "make utility    accuracy under a budget: all methods, tables and figures in results/utility/"
	@echo "make diffprivlib  the environment in which make benchmark measures diffprivlib, if it is there"
	@echo "make interpret  the environment in which the benchmark on tables runs private explainable boosting machines"
	@echo "make peers      the code of other libraries on the page for those who come from them, where they install"
	@echo "make scale      passes over 5,000,000 rows on disk (5 GB), and over rows on one and two workers"

.venv/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[plot]"
	@touch $@

# torch by itself first: the pinned version is a build for CPUs, where an index offers one.
.venv/.test: .venv/.demo
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[test,discrete,features,text,numba]"
	@touch $@

# The gallery runs examples with torch.
.venv/.docs: .venv/.test
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	@touch $@

.venv/.mutants: .venv/.test
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[mutants]"
	@touch $@

.venv/.bench: .venv/.test
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[bench]"
	@touch $@

# An environment of its own: diffprivlib does not import under a current scikit-learn.
.venv-diffprivlib/.done: benchmarks/diffprivlib-requirements.txt
	$(PYTHON) -m venv .venv-diffprivlib
	.venv-diffprivlib/bin/python -m pip install --quiet --requirement benchmarks/diffprivlib-requirements.txt
	@touch $@

diffprivlib: .venv-diffprivlib/.done

# Its releases are pinned with those of what it needs.
.venv-interpret/.done: benchmarks/interpret-requirements.txt
	$(PYTHON) -m venv .venv-interpret
	.venv-interpret/bin/python -m pip install --quiet --requirement benchmarks/interpret-requirements.txt
	@touch $@

interpret: .venv-interpret/.done

.venv-peers/.done: benchmarks/peers-requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --requirement benchmarks/peers-requirements.txt
	@touch $@

# What does not install is skipped, and said.
peers: .venv/.test
	-$(MAKE) --keep-going .venv-diffprivlib/.done .venv-peers/.done
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -rs tests/docs/test_peers.py

setup: .venv/.test

demo: .venv/.demo
	OMP_NUM_THREADS=1 $(BIN)/python examples/readme.py
	OMP_NUM_THREADS=1 $(BIN)/python examples/quickstart.py --out results

test: .venv/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# What to run after each change: rules of the code, golden fits, stages and releases, budgets, the known attacks.
QUICK := tests/architecture tests/golden tests/property/test_known_attacks.py tests/sklearn/test_estimator_interface.py \
	tests/unit/engine tests/unit/fit tests/unit/learning tests/unit/test_imports.py

quick: .venv/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow" $(QUICK)

# Libraries multiply in another order on another processor, and in two threads. So tests whose outcome hangs on
# products run a second time as on another one, of all products of parameters a covering set. Left out are tests of
# what cells, names, messages, files and charges become, those of modules, which multiply with torch, and those of
# compiled loops, which multiply by themselves. What shares passes over rows among threads runs a third time.
OF_PRODUCTS := $(addprefix tests/unit/,additive algorithms components engine fit inference learning linear rows \
	$(addprefix estimators/test_,continued.py estimator.py groups.py multilabel.py weights.py)) tests/property
OF_NONE := $(addprefix unit/,additive/test_knots.py rows/test_addresses.py rows/test_files.py rows/test_lines_of_names.py) \
	$(patsubst %,property/test_%.py,cells_of_any_type charges_add_up charges_of_tables compiled_loops encoded_frames \
	errors_of_others every_release known_attacks messages_of_neighbours module_gradients module_rows module_sensitivity \
	nothing_is_kept odd_cells public_helpers public_weights replay_of_files sampled_noise types_of_numbers users_state)

cores: .venv/.test
	OPENBLAS_CORETYPE=$$($(BIN)/python -m tests.other_cores) ATEN_CPU_CAPABILITY=avx2 OMP_NUM_THREADS=1 \
		$(BIN)/python -m pytest -q -r fE -n 2 --dist worksteal -m "not slow" --covering $(OF_PRODUCTS) \
		$(addprefix --ignore=tests/,$(OF_NONE))
	OMP_NUM_THREADS=2 $(BIN)/python -m pytest -q -r fE -n 2 -m "not slow" --covering tests/unit/linear \
		tests/unit/estimators/test_estimator.py tests/unit/rows/test_mapped_rows.py tests/unit/rows/test_sources.py

# New examples each time, many times as many.
test-all: .venv/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --hypothesis-profile=full

# With EXTRAS=1, pip also resolves all extras together, which takes minutes.
package: .venv/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.packaging $(if $(EXTRAS),--extras)

# An environment of its own. Tests of optional libraries are skipped there.
.venv-oldest/.done: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --constraint constraints-oldest.txt --editable ".[discrete,onnx]" \
		hypothesis onnxruntime pyarrow pytest pytest-xdist pyyaml
	@touch $@

# Tests of what other versions of the dependencies may change.
CORE := tests/golden tests/unit/algorithms tests/unit/components tests/unit/engine tests/unit/estimators/exports \
	tests/unit/linear tests/unit/privacy tests/unit/estimators/test_estimator.py tests/sklearn/test_estimator_interface.py \
	tests/sklearn/test_regression.py tests/sklearn/test_routing.py

oldest: .venv-oldest/.done
	OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -q -n 2 -m "not slow" $(CORE)

# The newest versions that the index offers, pre-releases among them: no constraints, and new each time.
prerelease:
	$(PYTHON) -m venv --clear .venv-prerelease
	.venv-prerelease/bin/python -m pip install --quiet --pre --upgrade --editable ".[discrete,onnx]" \
		hypothesis onnxruntime pyarrow pytest pytest-xdist pyyaml
	OMP_NUM_THREADS=1 .venv-prerelease/bin/python -m pytest -q -n 2 -m "not slow" $(CORE) \
		tests/architecture/test_private_names.py

.venv/.fuzz: .venv/.test
	-$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[fuzz]"
	@touch $@

# New cases each time. Without atheris, hypothesis makes all of them.
fuzz: .venv/.fuzz
	OMP_NUM_THREADS=1 CASES=$(or $(CASES),50000) $(BIN)/python -m pytest -q -n 2 --dist worksteal \
		--hypothesis-profile=fuzz tests/fuzz

# With --write, the command writes docs/sabotage.md anew.
sabotage: .venv/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.sabotage --jobs 2

faults: .venv/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults.side_channels

endurance: .venv/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults.endurance

# Every branch of what the guarantee rests on is taken by a test. Only these folders are traced, which is what
# takes the time. Tests that start processes, or that take long for no branch of their own, run in `make test`
# alone. One process is enough: a second would import everything again.
coverage: .venv/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "not slow and not untraced" \
		--cov=skmixdp/privacy --cov=skmixdp/_engine --cov-report= \
		--ignore=tests/unit/privacy/test_ledger_processes.py \
		tests/unit/privacy tests/unit/engine tests/sklearn/test_notebook.py tests/unit/audit/test_per_instance.py \
		tests/property/test_per_instance.py tests/faults/test_ledgers.py tests/faults/test_long_runs.py tests/faults/test_randomness.py \
		tests/fuzz/test_found.py tests/unit/learning/test_thinned.py tests/sklearn/test_persons.py \
		tests/reports/test_workflows.py tests/reports/test_said_in_time.py tests/reports/test_notebook.py
	$(BIN)/coverage report --include "skmixdp/privacy/*,skmixdp/_engine/release.py,skmixdp/_engine/recording.py" --fail-under 100

# Hours without SAMPLE: docs/mutants.md.
mutants: .venv/.mutants
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.mutants.run $(if $(SAMPLE),--sample $(SAMPLE))

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The code of the pages runs as printed. An example of the gallery runs again only after it has changed.
# Pages of names that no longer exist would be warned of.
docs: pages
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/docs/test_docs.py tests/docs/test_jobs.py tests/docs/test_peers.py \
		tests/docs/test_site.py::test_first_steps_are_complete \
		tests/unit/cli/test_output.py::test_the_documentation_is_true

# The pages alone, whose links must lead somewhere: `make test` runs the code of the documentation too.
pages: .venv/.docs
	rm -rf docs/api
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -j 2 -b html docs docs/_build/html
	$(BIN)/python -m tests.docs.built

benchmark: .venv/.bench
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.run
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.run --profile peers --out results/benchmarks/peers
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.shapes
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.growth

# What is there already is not fitted again.
utility: .venv/.bench
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.utility.run --profile default peers regression --jobs 2

scale: .venv/.bench
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.scale --out results/scale
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.parquet --out results/scale

clean:
	rm -rf .venv .venv-diffprivlib .venv-interpret .venv-oldest .venv-peers .venv-prerelease results docs/_build docs/api docs/gallery
