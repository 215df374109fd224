# The commands a person types. Each one but help and clean first makes .venv when it is missing or older than the
# dependency lists; not where an active conda environment has this project, as that of environment.yml does, whatever
# its name or path; nor on Binder, nor with BIN=FOLDER. The programs there are then used.

PYTHON  ?= python3
PROFILE ?= reference
TASK    ?= inpaint

INSTALLED := import importlib.metadata as m; m.version("on-demand-learning")
CONDA := $(shell [ -d "$$CONDA_PREFIX/conda-meta" ] && "$$CONDA_PREFIX/bin/python" -I -c '$(INSTALLED)' 2>/dev/null && echo "$$CONDA_PREFIX")
ACTIVE := $(or $(NB_PYTHON_PREFIX),$(CONDA))
BIN   := $(if $(ACTIVE),$(ACTIVE)/bin,.venv/bin)
READY := $(if $(subst .venv/bin,,$(BIN)),,.venv/ready)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.PHONY: help book class test table1 bench sweep sweep-slurm lint clean

help:  ## list these commands
	@echo "make COMMAND, where COMMAND is one of"
	@sed -n 's/^\([a-z0-9-]*\):.*## /  \1|/p' Makefile | while IFS='|' read -r name text; do printf '%-13s %s\n' "$$name" "$$text"; done

book: $(READY)  ## execute every notebook and build the book (PROFILE=reference loads what was measured; demo trains small networks for the notebooks; STRICT=1 fails on results of another protocol or of uncommitted code)
	@"$(BIN)/python" book/build.py $(PROFILE) $(if $(STRICT),--strict)

class: book  ## build the book, then write what a class needs: the lab as one file, a lecture with notes, exercises, and their solutions apart
	@"$(BIN)/uv" pip install --quiet --python "$(BIN)/python" --constraint requirements.txt --editable ".[class]"
	@"$(BIN)/python" book/classroom.py

table1: $(READY)  ## train all schedules of Table 1 on the demo photographs, going on after Ctrl-C (TASK=inpaint, interpolate, deblur or denoise)
	@"$(BIN)/python" -m companion reproduce --profile demo --dataset demo --seeds 0 --page table1-$(TASK)
	@mkdir -p runs/notebooks
	@"$(BIN)/papermill" notebooks/table1.ipynb runs/notebooks/table1-$(TASK).ipynb -p task $(TASK)
	@echo "notebook: runs/notebooks/table1-$(TASK).ipynb"
	@echo "table:    $${ODL_ROOT:+$$ODL_ROOT/}data/results/demo/tables/table1-demo-$(TASK).csv"

bench: $(READY)  ## measure speed against other ways to do the same, under 15 minutes (results: data/results/benchmarks/)
	@"$(BIN)/uv" pip install --quiet --python "$(BIN)/python" --constraint requirements.txt --editable ".[bench]"
	@"$(BIN)/python" -m bench

sweep: $(READY)  ## every run, notebook and the book as one graph, on this machine at the smoke profile (in runs/sweep/)
	@"$(BIN)/uv" pip install --quiet --python "$(BIN)/python" --constraint requirements.txt --editable ".[sweep]"
	@mkdir -p runs/sweep
	@PATH="$$(cd "$(BIN)" && pwd):$$PATH" ODL_ROOT="$(CURDIR)/runs/sweep" "$(BIN)/snakemake" --cores 2

sweep-slurm: $(READY)  ## three runs on a SLURM of its own that loses a node; needs root and slurm-wlm, munge
	@"$(BIN)/uv" pip install --quiet --python "$(BIN)/python" --constraint requirements.txt --editable ".[sweep]"
	@"$(BIN)/python" -m pytest -rs tests/on_slurm.py

test: $(READY)  ## run every test, and every notebook at the smoke profile
	@"$(BIN)/python" -m pytest -n auto --dist worksteal

lint: $(READY)  ## check formatting, style, and that imports go down the floors of pyproject.toml
	@"$(BIN)/ruff" format --check .
	@"$(BIN)/ruff" check .
	@"$(BIN)/lint-imports" --no-cache --no-logo

clean:  ## remove the built book and the caches; keep .venv, data, results and runs
	@rm -rf _build .pytest_cache .ruff_cache
	@find odl companion bench tests book -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/ready: requirements.txt pyproject.toml setup.py
	@command -v "$(PYTHON)" >/dev/null || { echo "make: no $(PYTHON) here; install Python 3.11 or newer, or say make PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than 3.11; say make PYTHON=python3.11" >&2; exit 1; }
	@echo "installing into .venv (a minute or two; about 6 GB on Linux, most of it PyTorch's CUDA libraries)"
	@"$(BIN)/python" -m pip --version >/dev/null 2>&1 || "$(BIN)/python" -m ensurepip >/dev/null 2>&1 || { rm -rf .venv; "$(PYTHON)" -m venv .venv; }
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check uv
	@"$(BIN)/uv" pip install --quiet --compile-bytecode --python "$(BIN)/python" -r requirements.txt
	@"$(BIN)/uv" pip install --quiet --python "$(BIN)/python" --no-deps --editable .
	@touch $@
