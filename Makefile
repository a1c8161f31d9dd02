# Needs Python 3.11 or newer (with venv), git and make; everything else is installed into .venv.

.DEFAULT_GOAL := help
SHELL := /bin/sh

# The first interpreter that really runs (a version manager's shim may not) and is new enough.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	if $$p -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then command -v $$p; break; fi; done)

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --editable
# Three for two cores: the tests of clusters mostly wait for their processes.
TEST_PROCESSES ?= 3

.PHONY: help quickstart test test-all test-gpu check docs build format benchmark fuzz clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## /\1|/' | \
		awk -F'|' '{ printf "  make %-12s %s\n", $$1, $$2 }'

quickstart: $(VENV)/installed ## install into .venv, then train and evaluate on Iris
	@echo "estimatorkit run configs/iris_dnn.yaml"
	@$(BIN)/estimatorkit run configs/iris_dnn.yaml

PYTEST = $(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist worksteal

test: $(VENV)/installed-test ## install with [test], then run the quick tests (minutes)
	@echo "Running the quick tests ($(TEST_PROCESSES) processes)"
	@$(PYTEST) -m "not slow and not gpu"

test-all: $(VENV)/installed-test ## the same, and the long sweeps, trainings and clusters
	@echo "Running all tests ($(TEST_PROCESSES) processes)"
	@$(PYTEST)

test-gpu: $(VENV)/installed-test ## the tests that compare the default device, a GPU say, with the CPU
	@XLA_PYTHON_CLIENT_PREALLOCATE=false $(PYTEST) -m gpu tests/gpu tests/compat/gpu

check: $(VENV)/installed-dev ## formatting, lint and types
	@echo "Formatting (ruff format --check)"
	@$(BIN)/ruff format --check .
	@echo "Lint (ruff check)"
	@$(BIN)/ruff check .
	@echo "Types (mypy --strict)"
	@$(BIN)/mypy --strict -p estimatorkit

docs: $(VENV)/installed-dev ## build the documentation into site/, with warnings as errors
	@echo "Running the reference's examples and writing the pages (a minute or two)"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The documentation is in site/: $(BIN)/mkdocs serve shows it"

build: $(VENV)/installed-dev ## make sdist and wheel in dist/, and check them
	@rm -rf build dist
	@$(BIN)/python -m build --quiet
	@$(BIN)/twine check --strict dist/*
	@ls -lh dist

format: $(VENV)/installed-dev ## format the code, and mend what lint can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

benchmark: $(VENV)/installed-test ## run the benchmarks (benchmarks/run.py)
	@$(BIN)/python benchmarks/run.py

fuzz: $(VENV)/installed-fuzz ## fuzz the readers of files and requests for FUZZ_SECONDS (600); may name TARGETS
	@$(BIN)/python -m tests.fuzz.run $(TARGETS)

clean: ## remove .venv, caches and build output (not runs/)
	@rm -rf $(VENV) build dist site *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "Removed .venv, caches and build output"

$(BIN)/python:
	@test -n "$(PYTHON)" || { \
		echo "error: found no Python 3.11 or newer (tried python3.13, python3.12, python3.11, python3)."; \
		echo "  hint:  install one, with its venv module (Debian, Ubuntu: apt install python3-venv),"; \
		echo "         or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)"; \
		exit 1; } >&2
	@"$(PYTHON)" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: PYTHON=$(PYTHON) is not a Python 3.11 or newer with venv."; exit 1; } >&2
	@echo "Creating $(VENV) with $(PYTHON)"
	@"$(PYTHON)" -m venv $(VENV)

# One stamp an extra: pip runs only when the metadata has changed.
$(VENV)/installed: setup.cfg pyproject.toml | $(BIN)/python
	@echo "Installing estimatorkit and what it needs into $(VENV) (once; a minute or two)"
	@$(PIP_INSTALL) .
	@touch $@

$(VENV)/installed-%: setup.cfg pyproject.toml | $(BIN)/python
	@echo "Installing estimatorkit[$*] into $(VENV) (once; a minute or two)"
	@$(PIP_INSTALL) ".[$*]"
	@touch $@
