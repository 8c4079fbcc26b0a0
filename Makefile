# Every target sets itself up: Python 3.11 or newer and pip are all that has to be there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: tour test quick lint format clean

tour: $(VENV)/core  ## install the core and show what it does
	$(BIN)/lab2048 tour

test: lint $(VENV)/test  ## lint, types and the whole test suite
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal tests/test_game.py tests/test_board.py tests/test_bulk.py tests/test_golden.py tests/test_solve.py
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m "not slow" tests/test_search.py

quick: $(VENV)/test  ## the tests that install nothing and train nothing
	$(BIN)/python -m pytest -m "not slow" --numprocesses 2 --dist loadfile

lint: $(VENV)/test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

$(VENV)/test: $(VENV)/core
	$(PIP) --editable '.[test]'
	touch $@
