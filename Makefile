# `make demo` and `make test` need Python >= 3.10, a C++17 compiler and make; everything else they install.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
INSTALL = $(BIN)/python -m pip install --quiet -c constraints.txt
SOURCES = setup.py build_cuda.py pyproject.toml constraints.txt $(shell find csrc -type f)
CXX_FILES = $(shell find csrc tests/cuda -name '*.h' -o -name '*.cpp' -o -name '*.inl' -o -name '*.cu' -o -name '*.cuh')

.PHONY: demo test test-all fuzz coverage lint format bench docs paper help clean

demo: $(VENV)/demo.stamp  ## install, build, and align a built-in pair of graphs
	$(BIN)/python -m stea_fast demo

test: $(VENV)/test.stamp  ## install, build, and run the quick tests: minutes on two cores
	$(BIN)/python -m pytest -n 2 -m "not slow" tests

test-all: $(VENV)/test.stamp  ## adds the slow tests, and runs only those: sanitizers, kills, browser, pages, real data
	$(BIN)/python -m pytest -n 2 -m slow tests

fuzz: $(VENV)/fuzz.stamp  ## mutated files for every reader; HOURS=8 for longer than one hour
	$(BIN)/python tests/fuzz/run.py --hours $(or $(HOURS),1) --guided

coverage: $(VENV)/test.stamp  ## which lines the tests run, as a table and in htmlcov/
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term --cov-report=html tests

lint: $(VENV)/lint.stamp  ## ruff, mypy and clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)

format: $(VENV)/lint.stamp  ## put the sources into their form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

bench: $(VENV)/bench.stamp  ## everything the speed claims rest on; see bench/README.md
	$(BIN)/python -m bench.kernels.compare

docs: $(VENV)/docs.stamp  ## the documentation as a website in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

paper: $(VENV)/bench.stamp  ## the quick part of the paper's experiments, and docs/results.md from all that was run
	$(BIN)/python -m bench.paper.run --quick
	$(BIN)/python -m bench.paper.render

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# A native build that fails is an error here; a user without a compiler falls back to Numba.
$(VENV)/demo.stamp: $(VENV)/bin/python $(SOURCES)
	STEA_REQUIRE_NATIVE=1 $(INSTALL) -e .
	touch $@

# What is built stays: the package is there, and only what its extras name is added.
$(VENV)/test.stamp: $(VENV)/demo.stamp
	$(INSTALL) "stea-fast[test,torch,faiss,cli,browser,sssom,examples,ray]"
	touch $@

# atheris has no wheel for every Python; without it the harness has its own mutations.
$(VENV)/fuzz.stamp: $(VENV)/test.stamp
	-$(INSTALL) "atheris>=2.3"
	touch $@

# mypy wants the types of what is imported.
$(VENV)/lint.stamp: $(VENV)/demo.stamp
	$(INSTALL) "stea-fast[lint,torch,faiss]"
	touch $@

$(VENV)/bench.stamp: $(VENV)/demo.stamp
	$(INSTALL) "stea-fast[bench,faiss,cli]"
	touch $@

$(VENV)/docs.stamp: $(VENV)/demo.stamp
	$(INSTALL) "stea-fast[docs]"
	touch $@

help:  ## what can be made
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

clean:  ## remove everything that was made
	rm -rf $(VENV) build dist site *.egg-info stea_fast/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
