# Everything runs in .venv, made from the pinned requirements.lock; nothing needs root.
PYTHON ?= python3
BIN := .venv/bin
DEMO_ARGS ?=
# Tests whose examples are random, or a few variants of many.
RANDOM = $(shell grep -rl --include='*.py' 'from tests.covering import' tests)

.DEFAULT_GOAL := help
.PHONY: help install demo test check bench fuzz docs table recompute lock package clean

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: .venv/installed ## make .venv with pinned versions

.venv/installed: requirements.lock pyproject.toml setup.py
	$(PYTHON) -c 'import sys; sys.exit("perfmodel needs Python 3.11 or newer; call make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q perfmodel features generators models
	@touch $@

demo: install ## calibrate two models on this machine and check their predictions; results in demo-out/
	$(BIN)/perfmodel demo --out demo-out $(DEMO_ARGS)

# Rewriting the tests' assertions takes seconds in each process, and is kept where Python may keep it.
test: export PYTHONDONTWRITEBYTECODE =
test: install ## the whole test suite: on two cores what counts, then by itself what measures
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not timed"
	$(BIN)/python -m pytest -m timed

check: install ## formatting, lint, the order of packages, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

bench: install ## benchmarks of parsing, evaluation, fitting, the store and campaigns
	$(BIN)/python -m pytest benchmarks --benchmark-only -o addopts= --benchmark-columns=median,ops,rounds
	$(BIN)/python -m benchmarks.store
	$(BIN)/python -m benchmarks.campaigns

fuzz: install ## 500 loop nests counted, all variants of families, 200,000 model strings, 10,000 hostile OpenCL C sources, 5,000 PTX texts, 2,000 stores and files
	PERFMODEL_EXAMPLES=500 $(BIN)/python -m pytest -n 2 $(RANDOM)
	$(BIN)/python tests/fuzz_model_strings.py --count 200000 --seed 1
	$(BIN)/python tests/fuzz_opencl_c.py --count 10000 --seed 1
	$(BIN)/python -m tests.fuzz_ptx --count 5000 --seed 1
	$(BIN)/python tests/fuzz_stores.py --count 2000 --seed 1
	$(BIN)/python -m tests.fuzz_files --count 2000 --seed 1

docs: install ## the documentation as a site in build/docs; every warning is an error
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs

table: install ## verify every family of kernels, and write the tables of docs/kernels.md and the models' pages
	$(BIN)/python docs/kernel_table.py
	$(BIN)/python docs/parameter_table.py

recompute: install ## every committed table of docs/results again from its store, compared
	$(BIN)/python -m benchmarks.recompute

lock: ## pin the newest versions that pyproject.toml allows (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --no-emit-index-url --no-annotate --no-header --quiet --upgrade -o requirements.lock

package: install ## wheel and sdist in dist/
	$(BIN)/python -m build --no-isolation

clean: ## remove everything that was built, but no results
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
