# Two commands do everything on a machine with Python (3.11 or newer), venv and make: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := runs/demo
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test check lint types bench clean lock

demo: $(VENV)/.package  ## the study at preset quick: claims table and page (about a minute and a half after the install)
	$(BIN)/partwise study attentive-guidance --preset quick --out $(DEMO) $(if $(wildcard $(DEMO)/study.json),--resume)

test: $(VENV)/.test  ## the whole test suite
	$(BIN)/python -m pytest

check: lint types test  ## what a change must pass

lint: $(VENV)/.dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: $(VENV)/.dev
	$(BIN)/mypy

bench: $(VENV)/.package  ## the tables under docs/results/benchmarks.md
	$(BIN)/python -m benchmarks.population_training
	$(BIN)/python -m benchmarks.stream_training
	$(BIN)/python -m benchmarks.contextual_decomposition
	$(BIN)/python -m benchmarks.influence_paths

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache

lock: $(VENV)/.dev  ## after a change of versions: what is installed now becomes the list of constraints
	$(BIN)/python -m pip list --format freeze --exclude-editable | sed 's/+cpu//' > constraints.txt

$(VENV)/.package: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test: $(VENV)/.package
	$(BIN)/python -m pip install --quiet --group test
	touch $@

$(VENV)/.dev: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --group dev
	touch $@
