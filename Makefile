# cuelearn: `make figures` and `make test` set up all they need. `make` alone lists the targets.

PROFILE   = quick
CHAPTER   =
FIGURE    =
DATA      = bundled
SCHEDULER =
PARAMS    =
SVG       =
LAB       =
FETCH     =
CORES    := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 1)
JOBS      = $(CORES)
PYTHON   ?=

# All paths are relative: a checkout may lie under a path with spaces, brackets, quotes or a dollar sign. `make -f` from elsewhere
# would clean up there.
ifeq ($(wildcard .ci/env),)
$(error make must be run in the checkout: make -C /path/to/cuelearn)
endif

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help

VENV   := .venv
READY  := $(VENV)/.ready-
PY     := $(VENV)/bin/python
CACHE  := .cache
# Processes times threads never exceed the cores.
THREADS = $(shell t=$$(( $(CORES) / ($(JOBS) > 0 ? $(JOBS) : 1) )); echo $$(( t > 0 ? t : 1 )))

# Nothing depends on a home directory: caches and settings lie in the checkout. numba's cache is placed by the package itself, under
# .cache/numba/<hash of the sources>. These paths are absolute, and only handed on: no shell reads them.
export MPLBACKEND := Agg
export MPLCONFIGDIR := $(CURDIR)/$(CACHE)/matplotlib
export IPYTHONDIR := $(CURDIR)/$(CACHE)/ipython
export JUPYTER_CONFIG_DIR := $(CURDIR)/$(CACHE)/jupyter/config
export JUPYTER_DATA_DIR := $(CURDIR)/$(CACHE)/jupyter/data
export JUPYTER_RUNTIME_DIR := $(CURDIR)/$(CACHE)/jupyter/runtime
export JUPYTER_PLATFORM_DIRS := 1
export PYTHONNOUSERSITE := 1
export PYTHONUNBUFFERED := 1
unexport PYTHONDONTWRITEBYTECODE  # where it is set, every process would compile all of its libraries again
export PYTHON
export PYTHONPATH := $(CURDIR)/notebooks

RUN = $(PY) -m companion.run.runner --profile $(PROFILE) --data $(DATA) --jobs $(JOBS) \
      $(if $(SCHEDULER),--scheduler '$(SCHEDULER)') $(if $(SVG),--svg) $(foreach c,$(CHAPTER),--chapter $(c)) $(foreach f,$(FIGURE),--figure $(f)) $(foreach p,$(PARAMS),-p '$(p)')
LIMITS = OPENBLAS_NUM_THREADS=$(THREADS) OMP_NUM_THREADS=$(THREADS) MKL_NUM_THREADS=$(THREADS) CUELEARN_THREADS=$(THREADS)

.PHONY: help env figures test test-long bench book lab course data lock reference gallery release clean distclean

help: ## list the targets
	@echo "make TARGET [PROFILE=smoke|quick|full|reference] [CHAPTER=mkl] [FIGURE=oks-thm-3] [DATA=bundled|original] [JOBS=$(CORES)] [SCHEDULER=tcp://host:port]"
	@echo "            [PARAMS=\"seed=3\"] [SVG=1] [LAB=\"--no-browser\"] [PYTHON=/path/to/python3.13]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile

env: $(READY)test ## set up .venv for all targets (conda or mamba where one works, else venv and requirements.lock)

# A layer of .venv is what an extra of pyproject.toml needs; test needs all that others do. Its stamp is written last: an installation
# that was killed has none and is made anew.
$(READY)%: requirements.lock environment.yml pyproject.toml .ci/env
	@bash .ci/env $*
	@touch $@ $(if $(filter test,$*),$(READY)notebooks $(READY)book $(READY)originals)

figures: $(READY)notebooks ## make all figures, tables and verdicts that are out of date, under figures/$(PROFILE)
	@$(LIMITS) $(RUN)

test: $(READY)test ## run the tests (5 minutes)
	$(LIMITS) $(PY) -m pytest -n $(JOBS) --dist loadfile -m "not long" $(TESTS)

test-long: $(READY)test ## run all tests, the long ones too
	$(LIMITS) $(PY) -m pytest -n $(JOBS) --dist loadfile $(TESTS)

bench: $(READY)test ## time the solvers (one thread, warmed up, medians)
	@set -- tests/benchmarks/bench_*.py; if [ ! -e "$$1" ]; then echo "no benchmark yet"; exit 0; fi; \
	for file; do \
	    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(PY) "$$file"; \
	done

book: $(READY)book figures ## the book: executed chapters, verdicts, reference as HTML, in figures/$(PROFILE)/book
	@$(RUN) --book

# Figures of a copy go to lab/figures. The kernel draws into the notebook, so it must not hear of Agg.
lab: $(READY)notebooks ## JupyterLab on copies of the notebooks, in lab/, which stay as you leave them; LAB="--no-browser" for options
	@mkdir -p lab
	@for notebook in notebooks/*.ipynb; do \
	    copy="lab/$${notebook##*/}"; \
	    [ -e "$$copy" ] && continue; \
	    sed 's/figures_dir = None/figures_dir = \\"figures\\"/' "$$notebook" > lab/.new && mv lab/.new "$$copy"; \
	done
	@mkdir -p $(VENV)/share/jupyter/lab/settings # no window of news over the first figure
	@echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}' > $(VENV)/share/jupyter/lab/settings/overrides.json
	@cd lab && env -u MPLBACKEND ../$(PY) -m jupyterlab $(LAB) $(addsuffix .ipynb,$(firstword $(CHAPTER)))

course: $(READY)notebooks ## for lecturers: student copies, solutions and slides of the chapters, in course/
	@$(LIMITS) $(PY) -m companion.run.runner --profile reference --jobs $(JOBS) $(foreach c,$(CHAPTER),--chapter $(c))
	@$(PY) -m companion.run.runner --course $(foreach c,$(CHAPTER),--chapter $(c))

data: $(READY)originals ## list the data sets, verify those that are there; FETCH="usps eth80" downloads
	@$(PY) -m companion.originals $(if $(FETCH),--fetch $(FETCH))

reference: $(READY)notebooks ## copy the finished chapters of the full profile (or PROFILE=..., DATA=...) to figures/reference
	@$(PY) -m companion.run.runner --reference --data $(DATA) --profile $(if $(filter command,$(firstword $(origin PROFILE))),$(PROFILE),full)

gallery: $(READY)notebooks ## write figures/README.md and figures/chapters, the reference results to be read in the repository
	@$(LIMITS) $(PY) -m companion.run.runner --profile reference --jobs $(JOBS)
	@$(PY) -m companion.run.runner --gallery

# --fork-strategy fewest: the same versions on every Python wherever they exist, so that numbers can be compared.
lock: ## resolve requirements.lock from pyproject.toml anew (Python 3.11 to 3.14, all platforms)
	@python=$(PY); [ -x $(PY) ] || python="$${PYTHON:-python3}"; \
	"$$python" -m venv build/lock && build/lock/bin/python -m pip install --quiet uv
	@echo "# Made by \`make lock\` from pyproject.toml with its extra test, for Python 3.11 to 3.14. Do not edit." > build/requirements.lock
	build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --extra test \
	    --no-header --no-emit-package cuelearn pyproject.toml >> build/requirements.lock
	@mv build/requirements.lock requirements.lock
	@rm -rf build/lock

release: ## wheels and sdists of cuelearn and cuelearn-data, built from the last commit, checked and tried, in dist/
	@.ci/release

clean: ## remove caches (numba's too) and the figures of smoke and quick; keeps figures/full and its sweeps
	rm -rf figures/smoke figures/quick course build dist .pytest_cache .hypothesis
	rm -rf $(CACHE)/numba $(CACHE)/matplotlib $(CACHE)/ipython $(CACHE)/jupyter $(CACHE)/sweeps/smoke $(CACHE)/sweeps/quick
	find . \( -path ./$(VENV) -o -path ./lab \) -prune -o -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -exec rm -rf {} +

distclean: clean ## remove everything that was generated, the environment and figures/full too; keeps lab
	rm -rf $(CACHE) figures/full $(VENV) cuelearn.egg-info
