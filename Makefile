# Every command that a user or a maintainer runs.  `make help` says what each does and how long it takes.
# Needs GNU make 4, a POSIX shell and Python 3.11 to 3.13; the rest is installed into $(VENV).

SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
# Both would reach into the virtual environment.
unexport PYTHONPATH PYTHONHOME

PYTHON ?= python3
VENV ?= .venv
ENGINE ?= vllm
PORT ?= 8000
ARGS ?=
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

ifeq ($(filter vllm simulated,$(ENGINE)),)
$(error ENGINE=$(ENGINE): it is vllm or simulated)
endif

# Three sets of packages, each contained in the next: base (simulated engine), cpu (vLLM), dev (tests).
FLAVOUR := $(if $(filter simulated,$(ENGINE)),base,cpu)
COVERS_base := base cpu dev
COVERS_cpu := cpu dev
COVERS_dev := dev
INPUTS := locks/base.txt locks/build.txt locks/cpu.txt locks/dev.txt locks/torch.txt locks/install.py pyproject.toml

# The stamp of a set is named after what it was made from and where it lies.
HASH = $(shell { cat $(INPUTS); echo '$(abspath $(VENV))'; } | cksum | tr ' ' '_')
stamp = $(VENV)/.prepared-$(1)-$(HASH)
prepared = $(shell $(VENV)/bin/python -c '' 2>/dev/null && ls $(foreach set,$(COVERS_$(1)),$(call stamp,$(set))) 2>/dev/null)
# The largest set that is there.
have = $(if $(call prepared,dev),dev,$(if $(call prepared,cpu),cpu,$(if $(call prepared,base),base)))
# Once prepared, the environment's own Python is the one that counts.
preflight = $(if $(call prepared,$(1)),$(VENV)/bin/python,$(PYTHON)) -m deployments.preflight install \
	--engine $(ENGINE) --venv $(VENV) --flavour $(1) --have "$(have)"

BIN := $(VENV)/bin/
PYTEST := $(BIN)python -m pytest
PREPARE := prepare-base prepare-cpu prepare-dev

.PHONY: help serve demo install install-simulated check test test-long contract bench-path bench-control bench-mixed bench-goodput bench-engine bench-route bench-workload bench-nodes evaluate clean $(PREPARE)

help:
	@echo 'make serve                   install what is missing, then serve on http://127.0.0.1:$(PORT)'
	@echo '                             first time about 5 min (1.1 GB to download, 4.6 GB on disk), later 1 min'
	@echo 'make serve ENGINE=simulated  the same service on a simulated engine, without vLLM and torch'
	@echo '                             first time about 1 min (0.2 GB to download, 0.8 GB on disk), later 20 s'
	@echo 'make demo                    a mixed load for 75 s on the service at PORT, or on one that it starts'
	@echo '                             and stops; about 4 min, the first time as long as serve on top'
	@echo 'make install                 only install what serve needs, about 3 min'
	@echo 'make install-simulated       only install what serve ENGINE=simulated needs, about 1 min'
	@echo
	@echo 'make check                   format, lint, types, import contracts, pure tests; at most 5 min'
	@echo 'make test                    check, then Ray and a core with the real engine; at most 20 min with install'
	@echo 'make test-long               soak, chaos, matrices with the real engine; about 90 min'
	@echo 'make contract                only what touches internals of Ray and vLLM; at most 5 min'
	@echo 'make bench-path              what the way through twinpool adds to a request;'
	@echo '                             about 12 min, or 5 with ARGS=--quick'
	@echo 'make bench-control           what one controller takes: reports, decisions at 1,000 replicas, memory;'
	@echo '                             about 9 min, or 3 with ARGS=--quick'
	@echo 'make bench-mixed             what classes and backfill add under a mixed load on both pools, on a service of'
	@echo '                             its own; about 13 min, or 5 with ARGS=--quick'
	@echo 'make bench-goodput           what one pool and two pools sell on two cores, beside what was predicted;'
	@echo '                             about 40 min per method, two or three of them, or 10 in all with ARGS=--quick;'
	@echo '                             goes on after an interruption with ARGS="--resume build/goodput.jsonl"'
	@echo 'make bench-engine            the simulated engine beside real ones, in cells that its profile has not seen;'
	@echo '                             about 30 min, or 5 with ARGS=--quick; goes on after an interruption with'
	@echo '                             ARGS="--resume build/engine-check"'
	@echo 'make bench-workload          how much drafts give each class of request, on a running service (ARGS=--url URL);'
	@echo '                             about 10 min'
	@echo 'make bench-route             what deciding on one request costs the ingress; about 30 s'
	@echo 'make bench-nodes             streams while nodes of a Ray cluster move, drain, die and fall silent; needs Linux,'
	@echo '                             root and redis-server; about 7 min, or 4 with ARGS=--quick'
	@echo 'make evaluate                policies on simulated fleets of 32 replicas, ours among them: docs/evaluation.md;'
	@echo '                             about 75 min on two cores, or 5 with ARGS=--quick;'
	@echo '                             goes on after an interruption with ARGS="--resume build/evaluate.jsonl"'
	@echo 'make clean                   remove the virtual environments and all caches of this checkout; 5 s'
	@echo
	@echo 'Settings (make TARGET NAME=VALUE):'
	@echo '  PYTHON=$(PYTHON)  VENV=$(VENV)  ENGINE=vllm|simulated  PORT=$(PORT)'
	@echo '  ARGS=             further arguments of twinpool serve, twinpool demo or pytest'
	@echo '  TORCH_INDEX=      where the CPU build of torch comes from, when pip is not configured for it'

serve:
	@$(call preflight,$(FLAVOUR)) --port $(PORT)
	@$(MAKE) --no-print-directory prepare-$(FLAVOUR) PREFLIGHT_DONE=1
	@exec $(BIN)twinpool serve --engine $(ENGINE) --port $(PORT) $(ARGS)

demo: prepare-$(FLAVOUR)
	@exec $(BIN)twinpool demo --serve --engine $(ENGINE) --url http://127.0.0.1:$(PORT) $(ARGS)

install: prepare-$(FLAVOUR)
	@echo 'installed: $(VENV)'

install-simulated:
	@$(MAKE) --no-print-directory install ENGINE=simulated

$(PREPARE): prepare-%:
ifndef PREFLIGHT_DONE
	@$(if $(call prepared,$*),,$(call preflight,$*))
endif
	@$(if $(call prepared,$*),,$(PYTHON) -I locks/install.py --flavour $* --venv $(VENV) \
		--stamp $(call stamp,$*) --torch-index $(TORCH_INDEX))
	@:

check: prepare-dev
	$(BIN)ruff format --check
	$(BIN)ruff check
	$(BIN)mypy
	$(BIN)lint-imports
	$(PYTEST) -n logical --maxprocesses 8 -m "not serve and not real and not long" $(ARGS)

test: check
	$(PYTEST) -m "(serve or real) and not long" $(ARGS)

test-long: prepare-dev
	$(PYTEST) -m "long" $(ARGS)

contract: prepare-dev
	$(PYTEST) -m "contract and not long" $(ARGS)

# Its engines are simulated, whatever ENGINE says.
bench-path: prepare-base
	$(BIN)python -m benchmarks.path $(ARGS)

bench-control: prepare-base
	$(BIN)python -m benchmarks.control $(ARGS)

bench-mixed: prepare-$(FLAVOUR)
	$(BIN)python -m benchmarks.mixed --engine $(ENGINE) $(ARGS)

# Its four engines are real, whatever ENGINE says.
bench-goodput: prepare-cpu
	$(BIN)python -m benchmarks.goodput $(ARGS)

# Its two engines are real, whatever ENGINE says.
bench-engine: prepare-cpu
	$(BIN)python -m benchmarks.engine_check $(ARGS)

bench-workload: prepare-base
	$(BIN)python -m benchmarks.workload $(ARGS)

bench-route: prepare-base
	$(BIN)python -m benchmarks.route $(ARGS)

# Its engines are simulated, whatever ENGINE says.
bench-nodes: prepare-base
	$(BIN)python -m benchmarks.nodes $(ARGS)

# Its engines, and all of the service, are simulated.
evaluate: prepare-base
	$(BIN)python -m benchmarks.evaluate $(ARGS)

# Only a directory that Python marked as a virtual environment is removed; .venv-peer is of bench-path.
clean:
	@for folder in $(VENV) .venv-peer; do if [ -e $$folder/pyvenv.cfg ]; then rm -rf $$folder; fi; done
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
