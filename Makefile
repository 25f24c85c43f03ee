# The front door. `make` lists the targets; every one of them sets up what it needs.
#
#   A=rmsnorm            which assignment
#   SUBMISSION=PATH      a folder, a zip, a file or a notebook to grade (default: starter/$A)
#   TORCH_INDEX_URL=URL  where to take torch from, e.g. an index of CPU-only builds
#   PYTHON=python3.12    which Python to build the environment with (3.11 or newer)

PYTHON  ?= python3
# A student's handout has no tests of the project: it needs fewer packages and fewer targets, and
# its one assignment need not be named.
WHOLE   := $(wildcard tests/mini_triton)
A       ?= $(if $(WHOLE),,$(notdir $(firstword $(wildcard assignments/*))))
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
EXTRA   := $(if $(WHOLE),dev,test)
INDEX   := $(if $(TORCH_INDEX_URL),--index-url $(TORCH_INDEX_URL))
TRITON  := triton==3.7.1
TORCH   := torch==2.13.0
# A path as one word of the shell's, whatever is in it; ~/ stays the home folder.
home     = $(if $(filter ~/%,$(firstword $(1))),$(patsubst ~/%,$(HOME)/%,$(1)),$(1))
quoted   = '$(subst ','\'',$(call home,$(1)))'
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)

.DEFAULT_GOAL := help
.PHONY: help setup demo test grade report submit solutions check lint format types bench \
        gradescope gradescope-check handout clean

help: ## List the targets
	@echo "make TARGET [A=assignment]"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) \
	  | $(if $(WHOLE),cat,grep -vE '## (TA|Instructor):') | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is $$($(PYTHON) -V 2>&1); Bytewise needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) …"
	@$(BIN)/python -m pip install -q $(INDEX) '$(TORCH)'
	@$(BIN)/python -m pip install -q -e '.[$(EXTRA)]'
	@touch $@

setup: $(READY) ## Make .venv with everything (quick when it is there)

demo: $(READY) ## TA: grade the reference and the untouched starter of an assignment
	@$(BIN)/python -m grader demo $(or $(A),rmsnorm)

PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS)
# These first, in processes of their own: a judge forks the process that it is made in, and what
# other tests have loaded there would count as the student's memory.
JUDGED := $(wildcard tests/attacks tests/grader)

test: $(READY) ## Run the tests; with A=rmsnorm, the public tests on your file
ifeq ($(A),)
	@$(if $(JUDGED),$(PYTEST) $(JUDGED))
	@$(PYTEST) $(wildcard tests) $(wildcard assignments/*/public) $(addprefix --ignore=,$(JUDGED))
else
	@$(BIN)/python -m pytest -q -rN --tables assignments/$(A)/public --submission $(call quoted,$(or $(SUBMISSION),starter/$(A)))
endif

grade: $(READY) ## TA: grade a submission: A=rmsnorm SUBMISSION=PATH
	@$(BIN)/python -m grader grade $(or $(A),rmsnorm) $(call quoted,$(or $(SUBMISSION),starter/$(or $(A),rmsnorm)))

report: $(READY) ## Grade and write dist/report.html: A=rmsnorm [SUBMISSION=PATH]
	@mkdir -p dist
	@$(BIN)/python -m grader grade $(or $(A),rmsnorm) $(call quoted,$(or $(SUBMISSION),starter/$(or $(A),rmsnorm))) --html dist/report.html
	@echo "open dist/report.html"

submit: $(READY) ## Zip just the declared files for Gradescope: A=rmsnorm [SUBMISSION=PATH]
	@$(BIN)/python -m grader submit $(or $(A),rmsnorm) $(if $(SUBMISSION),--from $(call quoted,$(SUBMISSION)))

solutions: $(READY) ## Instructor: regenerate starter/ and the golden table of counts
	@$(BIN)/python -m grader solutions $(A)

check: $(READY) lint types ## Instructor: lint, types, drift, and proof that grading judges rightly
	@$(BIN)/python -m grader check $(A)

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(READY) ## Instructor: format all Python files
	@$(BIN)/ruff check --fix-only -q .
	@$(BIN)/ruff format .

types: $(READY)
	@$(BIN)/mypy

bench: $(READY) ## Instructor: time the simulator, launches and graph passes
	@$(BIN)/python tests/benchmarks/against_interpreter.py
	@PYTHONPATH=. $(BIN)/python tests/benchmarks/first_launch.py
	@$(BIN)/python tests/benchmarks/graph_pipeline.py

gradescope: $(READY) ## TA: build dist/gradescope/<assignment>.zip: A=rmsnorm
	@$(BIN)/python -m grader gradescope $(or $(A),rmsnorm)

gradescope-check: $(READY) ## TA: run that zip as Gradescope would, on four submissions: A=rmsnorm
	@$(BIN)/python -m grader gradescope-check $(or $(A),rmsnorm)

handout: $(READY) ## TA: build dist/handout/<assignment>.zip for students: A=rmsnorm
	@$(BIN)/python -m grader handout $(or $(A),rmsnorm)

clean: ## Remove what was built (not .venv)
	@rm -rf dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
