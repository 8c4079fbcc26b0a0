# Every target sets itself up: Python 3.11 or newer and pip are all that has to be there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: tour studio test browser quick lint format clean

tour: $(VENV)/core  ## install the core and show what it does
	$(BIN)/lab2048 tour

studio: $(VENV)/studio  ## install and open the page
	$(BIN)/lab2048 studio --open

test: lint $(VENV)/test browser  ## lint, types and the whole test suite
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal tests/test_game.py tests/test_board.py tests/test_bulk.py tests/test_golden.py tests/test_solve.py
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m "not slow" tests/test_search.py

browser:  ## Debian's chromium, where it is missing and may be installed
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "chromium is missing and cannot be installed here: tests of the page are left out, or fail if CI is set"

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

$(VENV)/studio: $(VENV)/core
	$(PIP) --editable '.[studio]'
	touch $@

$(VENV)/test: $(VENV)/core
	$(PIP) --editable '.[test]'
	touch $@
