# One environment for everything: .venv, installed with constraints.txt. A second run is quick:
# the stamp is older than neither pyproject.toml nor constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2
EXAMPLES ?= 20000

# One thread for each test worker: two workers with all threads each would fight for the cores.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help venv demo test check format lint types layers pages fuzz bench studies clean

help:  ## list these targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## */  \1\t/' | expand -t 12

venv: $(STAMP)  ## make .venv and install the project with everything the tests need

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "$(PYTHON) is not Python 3.11 or later; name one: make PYTHON=/path/to/python3.11" >&2; \
	  exit 1; }
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing into $(VENV) (torch is large; this happens once)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  -e '.[bench,plots,cluster,dev]' -c constraints.txt
	@touch $@

demo: $(STAMP)  ## ask one real question and check the answer on this machine
	@$(BIN)/mha-configurator recommend --params 7B --context 32k --target h100-sxm --verify

lint: $(STAMP)  ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "run: make format" >&2; exit 1; }

types: $(STAMP)  ## mypy, strict
	@$(BIN)/mypy

layers: $(STAMP)  ## import-linter: imports point down only
	@$(BIN)/lint-imports

test: lint types layers  ## lint, types, layers, then the tests
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup

format: $(STAMP)  ## let ruff format the code
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --fix --quiet .

check: format  ## format, then everything that test does
	@$(MAKE) --no-print-directory test

pages: $(STAMP)  ## make outputs/ anew: reports, rulebook, schemas, README's example
	@$(BIN)/python tests/regenerate.py

fuzz: $(STAMP)  ## many more random inputs than make test tries
	@HYPOTHESIS_PROFILE=fresh MHA_FUZZ_EXAMPLES=$(EXAMPLES) \
	  $(BIN)/python -m pytest -q -n $(WORKERS) -k "fuzz or properties"

bench: $(STAMP)  ## speed of start-up and search, in ratios and rows a second
	@for script in startup search; do \
	  echo "== benchmarks/$$script.py"; $(BIN)/python benchmarks/$$script.py --output outputs/measurements || exit 1; done

studies: $(STAMP)  ## make outputs/studies/ anew
	@for study in heads mqa mla-rank; do \
	  $(BIN)/mha-configurator study $$study --output outputs/studies || exit 1; done

clean:  ## remove what the tools left behind, not .venv
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find configurator rules tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
