# The verbs of this repository; `make help` lists them.  CI runs the same ones.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:

PYTHON ?=  # of the virtual environment; empty: the first that is new enough
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
LAB := $(BIN)/python -m tests.lab
JOBS ?= 2
PINNED := pyproject.toml requirements/host.txt requirements/dev.txt
# What is downloaded is what its pin says, to the last bit; our own package is built here, by what was pinned.
PIP := $(BIN)/python -m pip -q --disable-pip-version-check install
FROM_PINS := $(PIP) --require-hashes -r requirements
FROM_CLONE := $(PIP) --no-deps --no-build-isolation -e .

.PHONY: help setup setup-dev setup-lab setup-compat up check test test-quick test-host test-vm test-systemd test-kube test-compat
.PHONY: lint format soak mutants bench docs generate build docker-build pins clean

help:  ## list the verbs
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.setup  ## the j10ce-qos command: venv, pinned packages, link on PATH
	@for name in j10ce-qos j10ce-qos-agent j10ce-qos-controller-manager; do tools/link-command $(BIN)/$$name; done

setup-dev: setup $(VENV)/.setup-dev  ## the above and what contributors need: pytest, mypy, ruff, ...

setup-lab: setup-dev  ## the above and what the lab needs: QEMU, a Debian kernel, a Kubernetes control plane (built once)
	@tools/apt-need qemu-system-x86_64:qemu-system-x86 busybox:busybox-static depmod:kmod dbus-daemon:dbus \
	    /lib/systemd/systemd:systemd /usr/lib/systemd/user/dbus.socket:dbus-user-session mke2fs:e2fsprogs
	$(LAB) fetch

setup-compat: setup-lab  ## the above and the oldest Kubernetes that is supported, v1.20.2 (built once)
	@tools/apt-need rsync jq make dpkg-source:dpkg-dev
	$(LAB) fetch --kubernetes old

$(VENV)/.setup: $(PINNED)
	@tools/make-venv $(VENV) $(PYTHON)
	$(FROM_PINS)/host.txt
	$(FROM_CLONE)
	touch $@

$(VENV)/.setup-dev: $(VENV)/.setup
	@$(FROM_PINS)/dev.txt
	touch $@

up: setup  ## run the embedded stack in the foreground: store, API on loopback, agent on this host
	@exec $(BIN)/j10ce-qos up

check: lint test-quick  ## lint and quick tests: before every commit

lint: setup-dev  ## ruff, mypy, import contracts, house style
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --no-logo
	$(PYTEST) -q -n0 tests/style

format: setup-dev  ## rewrite the sources as ruff wants them
	@$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format .

test: setup-lab  ## everything: quick and slow tests, host kernel, both guests, a current Kubernetes (under 25 minutes)
	@$(BIN)/python tools/run_tests.py

test-quick: setup-dev  ## pure tests, a few minutes
	@$(PYTEST) -q -n $(JOBS)

test-host: setup-dev  ## everything that needs this machine's own kernel: enforcement, agent, command line (root)
	@$(PYTEST) -m "host and not kube"

test-vm: setup-lab  ## enforcement in the plain cgroup v2 guest
	@$(LAB) pytest -- -m "(host or vm) and not real_cpus" tests/enforce

test-systemd: setup-lab  ## the suite of the guest whose PID 1 is systemd
	@$(LAB) pytest --systemd -- -m vm_systemd tests/systemd

test-kube: setup-lab  ## everything that needs a Kubernetes control plane: CRDs, managers, agents, webhooks, extender (root)
	@$(BIN)/python tools/run_tests.py kube

test-compat: setup-compat  ## the same on v1.20.2
	@J10CE_KUBE_VERSION=old $(BIN)/python tools/run_tests.py kube

soak: setup-lab  ## long random runs: a million reservations, faults in the store, fail-overs, 2,000 examples of each property (hours)
	@$(PYTEST) -m soak -n0
	J10CE_EXAMPLES=soak $(PYTEST) -m "hypothesis and not slow and not kube" -n $(JOBS) --timeout 3600

bench: setup-dev  ## print the numbers that the README promises
	@$(BIN)/python -m benchmarks

mutants: setup-dev  ## break 100 lines one by one: do the tests of their packages notice? (under 30 minutes)
	@$(BIN)/python tools/mutants.py

docs: setup-dev  ## check the docs: links, commands, generated tables
	@$(PYTEST) -q tests/docs

generate: setup-dev  ## rewrite every derived file
	@shopt -s nullglob
	for script in tools/generate_*.py; do echo "$$script"; $(BIN)/python "$$script"; done

build: setup-dev  ## wheel and sdist, into dist/
	@rm -rf dist
	$(BIN)/python -m hatchling build

docker-build:  ## the images of build/*.Dockerfile, by docker, podman or buildah; REGISTRY=... names them
	@tools/build-images

pins: setup-dev  ## take the newest versions that pyproject.toml allows, with their hashes, into requirements/
	@$(PIP) uv
	UV=$(BIN)/uv $(BIN)/python tools/pin.py

clean:  ## remove the venv and all caches of the clone
	@rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
