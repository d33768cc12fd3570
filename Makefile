# `make help` lists the targets. Two do all set-up on a fresh Debian 12 machine as root: `make demo` and `make test`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CACHE ?= $(or $(WARMFRONT_CACHE),$(HOME)/.cache/warmfront)
UV := $(CACHE)/uv/bin/uv
PY := .venv/bin/python
STEP := .ci/step
CLUSTER := $(PY) -m e2e.localcluster
CODE := crds operator forecaster runtime bench e2e tests
PACKAGES := crds operator forecaster runtime
EXTRAS := operator forecaster runtime dev
export PYTHONDONTWRITEBYTECODE = 1

.PHONY: help
help:  ## This list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

# --- set-up -----------------------------------------------------------------------------------------------------

$(UV): requirements/bootstrap.txt
	@$(STEP) "package installer (uv)" bash -c 'python3 -m venv $(CACHE)/uv && $(CACHE)/uv/bin/pip install --quiet --require-hashes -r requirements/bootstrap.txt && touch $(UV)'

.venv/.stamp: $(UV) requirements/dev.txt pyproject.toml
	@$(STEP) "virtual environment (.venv, about 500 MB)" bash -c '$(UV) venv --quiet --allow-existing .venv && $(UV) pip sync --quiet --require-hashes requirements/dev.txt && $(UV) pip install --quiet --no-deps --editable . && touch .venv/.stamp'

.PHONY: setup
setup: .venv/.stamp  ## Create the virtual environment with everything for development

# --- checks -----------------------------------------------------------------------------------------------------

.PHONY: lint
lint: setup  ## ruff, mypy, import contracts, generated files
	@$(STEP) "ruff" bash -c '.venv/bin/ruff check $(CODE) && .venv/bin/ruff format --check --quiet $(CODE)'
	@$(STEP) "mypy" .venv/bin/mypy
	@$(STEP) "import contracts" bash -c '.venv/bin/lint-imports --no-cache > build/contracts.txt || { cat build/contracts.txt; exit 1; }'
	@$(STEP) "generated files are up to date" $(MAKE) check-generated

.PHONY: format
format: setup  ## Format the code
	.venv/bin/ruff check --fix $(CODE); .venv/bin/ruff format $(CODE)

.PHONY: generate
generate: setup  ## Write the CRDs and the field reference from the models
	$(PY) -m warmfront_api.generate --write .

.PHONY: check-generated
check-generated: setup
	@$(PY) -m warmfront_api.generate --check .

COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url
.PHONY: lock
lock: $(UV)  ## Resolve the dependencies again (requirements/*.txt, hashed)
	@for extra in $(EXTRAS); do \
	  $(COMPILE) --extra $$extra -o requirements/$$extra.txt pyproject.toml; done
	@sed -n 's/^requires = \["\(.*\)"\]$$/\1/p' pyproject.toml | $(COMPILE) -o requirements/build.txt -

# --- benchmarks -------------------------------------------------------------------------------------------------

.PHONY: bench
bench: bench-capacity  ## Every benchmark; writes build/bench/NAME.json (DATA=folder, QUICK=1, SEED=n)

.PHONY: bench-capacity
bench-capacity: setup  ## Misses at the load that the solver calls safe, on recorded services (5 min)
	@$(STEP) "bench capacity" $(PY) -m bench.capacity

# --- tests ------------------------------------------------------------------------------------------------------

.PHONY: test
test: setup lint cluster-images test-unit test-e2e  ## Fast tier: lint, unit, property, one e2e per pillar on a real Kubernetes

.PHONY: test-all
test-all: setup lint cluster-images vllm-setup test-unit  ## Everything: adds the slow e2e tests and real vLLM
	@$(MAKE) test-e2e SELECT=""

.PHONY: test-unit
test-unit: setup  ## Unit and property tests, no cluster
	@$(STEP) "unit and property tests" .venv/bin/pytest -q tests

SELECT ?= not slow and not vllm
.PHONY: test-e2e
test-e2e: setup cluster-images  ## Tests on the real cluster (starts it; KEEP=1 leaves it)
	@$(STEP) "e2e tests ($(or $(SELECT),all)), cluster start included" $(CLUSTER) with -- .venv/bin/pytest -q -m "$(SELECT)" e2e

.PHONY: vllm-setup
vllm-setup: setup  ## Real vLLM for the CPU in a virtual environment of its own (6 GB, 6 min)
	@$(STEP) "real vLLM, CPU build (6 GB)" $(PY) -m e2e.vllm setup

.PHONY: test-vllm
test-vllm: cluster-images vllm-setup  ## The tests that need a real vLLM
	@$(MAKE) test-e2e SELECT=vllm

# --- cluster and demo -------------------------------------------------------------------------------------------

.PHONY: cluster-images
cluster-images: setup  ## What the cluster needs: Debian packages, Kubernetes and Helm, images
	@$(STEP) "cluster programs and images (first time: builds Kubernetes, about 10 min)" $(CLUSTER) images

.PHONY: cluster-up
cluster-up: setup  ## A real two-node Kubernetes in a network namespace of its own
	@$(STEP) "cluster up (first time: builds Kubernetes, about 10 min)" $(CLUSTER) up

.PHONY: cluster-down
cluster-down: setup  ## Stop it; leaves nothing behind
	@$(STEP) "cluster down" $(CLUSTER) down

.PHONY: kubectl
kubectl: setup  ## kubectl on that cluster: make kubectl ARGS="get pods -A"
	@$(CLUSTER) kubectl $(ARGS)

.PHONY: demo
demo: setup  ## The main job on recorded traffic: forecast a jump, be warm before it (KEEP=1 leaves it running)
	@$(STEP) "demo" $(PY) -m e2e.demo

.PHONY: clean
clean:  ## Remove what was built in this folder (the cache in ~/.cache/warmfront stays)
	rm -rf build dist .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
