# Everything goes into .venv in this folder; programs that are not Python go to the user's cache.
# `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := .venv/bin

# What `make demo` drives. Any other override may be added: make demo DEMO_ARGS=runtime.rollouts=96
DEMO := deploy=local sim=driving topology=2gpu runtime.nr_workers=4 runtime.rollouts=48 run.name=demo
DEMO_ARGS ?=
PYTEST_ARGS ?=
TEST_PROCESSES ?= 2
BENCH_ARGS ?=

.PHONY: help setup demo check format test acceptance test-bare bench docs docs-reference clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install what is missing: .venv, rendering libraries, Prometheus
	@scripts/setup

demo: setup ## Drive 48 rollouts of the reference simulation, with telemetry and plot
	@$(BIN)/rolltop run $(DEMO) $(DEMO_ARGS)

check: setup ## Lint, format, types, import walls, generated pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.generate_docs --check

format: setup ## Rewrite the sources as ruff wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: setup ## Run the tests, in TEST_PROCESSES processes
	@$(BIN)/pytest --ignore=tests/acceptance -n $(TEST_PROCESSES) --dist loadfile \
		--no-loadscope-reorder $(PYTEST_ARGS)

acceptance: setup ## Run what takes whole runs of minutes: slow services, failing calls
	@$(BIN)/pytest tests/acceptance $(PYTEST_ARGS)

test-bare: ## Run demo and tests as a user who has nothing (see scripts/test_bare)
	@scripts/test_bare

bench: setup ## Measure what telemetry costs, into bench.json
	@$(BIN)/python -m bench $(BENCH_ARGS)

docs: setup ## Build the documentation into docs/_build
	@$(BIN)/python -c 'import furo, myst_parser, sphinx_design' 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
	$(BIN)/sphinx-build -n -W --keep-going -b html docs docs/_build

docs-reference: setup ## Write the generated pages of docs/reference anew
	$(BIN)/python -m scripts.generate_docs

clean: ## Remove what was built here; runs/ and the user's cache stay
	rm -rf .venv docs/_build dist build bench.json .pytest_cache .mypy_cache .ruff_cache \
		.import_linter_cache .hypothesis
