# `make help` lists the targets. A target that needs system or Python packages installs them first.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Flags of `kubebeast train`, e.g. make train ARGS="--env BreakoutNoFrameskip-v4 --total-steps 5000000"
ARGS ?=
# Flags of scripts/monitor, e.g. make monitor MONITOR_ARGS="--learner 127.0.0.1:9095"
MONITOR_ARGS ?=
# Further pytest arguments, e.g. make test PYTEST_ARGS="tests/unit -k vtrace"
PYTEST_ARGS ?=
# Flags of `make checks`, e.g. make checks CHECKS_ARGS="--only chart"
CHECKS_ARGS ?=
# Number of concurrent tests. Most tests wait for processes more than they compute.
PYTEST_WORKERS ?= 3
# Selected end-to-end tests.
E2E_TESTS ?= tests/e2e
# Length of each measurement of `make bench`.
SECONDS_EACH ?= 10
# Tag of `make images`; if empty, the packages' version.
TAG ?=
# Number of inputs of `make fuzz` for each target.
FUZZ_RUNS ?= 100000
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# Folder in which compilers, mypy and `make checks` cache results for other clones and later runs.
export CHECKS_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kubebeast

# Tests start hundreds of processes that import the same modules.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
PYTHON_SOURCES := protos services benchmarks checks deploy/helm deploy/helm/generate docs/generate docs/site examples harness locks scripts/lock scripts/release/chart scripts/release/installed.py tests native/kubebeast_native
# Disables the theme's notice about the next major version of MkDocs, because the pinned version is older.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs
CPP_SOURCES = $(shell find native/src native/fuzz native/instructions native/client benchmarks examples tests/device -name '*.h' -o -name '*.cc' -o -name '*.c')

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install the requirements of training: system packages, .venv, the native core
	@scripts/bootstrap

.PHONY: setup-dev
setup-dev: ## Install the same, and the tools for lint, tests and benchmarks
	@scripts/bootstrap --dev

.PHONY: train
train: setup ## Train on this machine; flags in ARGS="..."
	@$(BIN)/kubebeast train $(ARGS)

.PHONY: monitor
monitor: ## Watch a run on this machine with Prometheus: alerts, graphs; flags in MONITOR_ARGS="..."
	@scripts/prometheus-tools
	@scripts/monitor $(MONITOR_ARGS)

.PHONY: test
test: ## Run the tests of the C++ core and of the Python packages, without those marked slow
	@$$(scripts/bootstrap --python) -m checks --fast --pytest-args="$(PYTEST_ARGS)"

.PHONY: checks
checks: ## Run the checks of a change that have not passed with the same inputs; CI_ALL=1 runs all
	@$$(scripts/bootstrap --python) -m checks $(CHECKS_ARGS)

.PHONY: pytest
pytest: setup-dev ## Run all Python tests, the slow ones too; narrow them with PYTEST_ARGS="..."
	@$(BIN)/pytest -n $(PYTEST_WORKERS) --dist worksteal $(PYTEST_ARGS)

.PHONY: system-test
system-test: setup-dev ## Run only the tests of real env-servers on a real learner, with every kind of failure
	@$(BIN)/pytest -n $(PYTEST_WORKERS) --dist worksteal tests/system $(PYTEST_ARGS)

.PHONY: native-test
native-test: native-test-default native-test-tsan native-test-asan ## Run the C++ tests, also under TSan and ASan

.PHONY: clang
clang:
	@scripts/bootstrap --clang

native-test-asan: clang

native-test-%: setup-dev
	@cd native && cmake --preset $* && cmake --build --preset $* -j $(JOBS) && ctest --preset $* -j $(JOBS)

.PHONY: gpu-kernels
gpu-kernels: setup-dev ## Build the kernels of an update for an H100 with Triton, which is installed for it
	@$(BIN)/pip install --quiet triton==3.6.0
	@$(BIN)/python -m pytest tests/device/test_triton_kernels.py

.PHONY: fuzz
fuzz: ## Fuzz the wire codec and the streams' state machine, FUZZ_RUNS=100000 inputs each
	@scripts/bootstrap --clang
	@cd native && cmake --preset asan && cmake --build --preset asan -j $(JOBS) --target decode_fuzz stream_fuzz
	@native/fuzz/run $(FUZZ_RUNS) $(JOBS)

.PHONY: images
images: ## Build the images of learner and env-server; TAG=..., IMAGE_ARGS="--build-arg ..."
	@scripts/images $(TAG)

.PHONY: cluster-tools
cluster-tools: setup-dev
	@scripts/cluster-tools

.PHONY: chart-test
chart-test: cluster-tools ## Check the Helm chart: lint, schema, rendered manifests, alert rules
	@PATH="$$PATH:$(CURDIR)/.venv/tools" $(BIN)/pytest -n $(PYTEST_WORKERS) --dist worksteal tests/chart $(PYTEST_ARGS)

.PHONY: monitor-test
monitor-test: setup-dev ## Test every metric, panel and rule, and the alerts of disturbances, with a real Prometheus
	@scripts/prometheus-tools
	@PATH="$$PATH:$(CURDIR)/.venv/tools" $(BIN)/pytest tests/monitoring $(PYTEST_ARGS)

.PHONY: e2e
e2e: cluster-tools ## Install, scale, kill and upgrade on the cluster of KUBECONFIG, which must have the images
	@PATH="$$PATH:$(CURDIR)/.venv/tools" $(BIN)/pytest $(E2E_TESTS) $(PYTEST_ARGS)

.PHONY: release-rehearsal
release-rehearsal: setup cluster-tools ## Rehearse a release, as root: build, publish to local servers, install as a new user; needs KUBECONFIG
	@scripts/release/rehearse-packages
	@PATH="$$PATH:$(CURDIR)/.venv/tools" scripts/release/rehearse-chart

.PHONY: lint
lint: setup-dev protos-check ## Check style, types and generated code
	@$(BIN)/ruff check $(PYTHON_SOURCES)
	@$(BIN)/ruff format --check $(PYTHON_SOURCES)
	@$(BIN)/mypy --cache-dir "$$CHECKS_CACHE/mypy"
	@$(BIN)/clang-format --dry-run -Werror $(CPP_SOURCES)

.PHONY: workflows-lint
workflows-lint: setup-dev ## Check the workflows of GitHub: schema, security, mistakes
	@scripts/workflows-lint

.PHONY: tidy
tidy: setup-dev ## Check the C++ core with clang-tidy
	@export PATH="$(CURDIR)/$(BIN):$$PATH" && cd native && cmake --preset tidy && cmake --build --preset tidy -j $(JOBS)

.PHONY: format
format: setup-dev ## Rewrite sources in the repository's style
	@$(BIN)/ruff check --fix $(PYTHON_SOURCES)
	@$(BIN)/ruff format $(PYTHON_SOURCES)
	@$(BIN)/clang-format -i $(CPP_SOURCES)

.PHONY: protos-check
protos-check: setup-dev ## Check that the generated Python stubs match the .proto files
	@$(BIN)/python protos/regenerate --check

.PHONY: docs
docs: setup-dev ## Build the guides as a website into build/site; a warning is an error
	@$(MKDOCS) build --strict --quiet

.PHONY: docs-serve
docs-serve: setup-dev ## Serve the website at http://127.0.0.1:8000, and rebuild it after every change
	@$(MKDOCS) serve

.PHONY: bench
bench: setup-dev ## Measure transport and training, SECONDS_EACH=10 for each measurement
	@$(BIN)/python -m benchmarks.transport --seconds $(SECONDS_EACH)
	@$(BIN)/python -m benchmarks.train --seconds $(SECONDS_EACH)
	@$(BIN)/python -m benchmarks.train --command mono --seconds $(SECONDS_EACH)

.PHONY: instructions
instructions: setup-dev ## Count instructions of the core's hot operations under callgrind; more than recorded is an error
	@$(BIN)/python -m benchmarks.instructions

.PHONY: clean
clean: ## Remove build products and caches; .venv and logs stay
	@rm -rf native/build build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find protos services benchmarks checks harness tests -name __pycache__ -prune -exec rm -rf {} +
