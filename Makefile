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
RUN := $(BIN)/python -m tools.testing
COMMANDS := j10ce-qos j10ce-qos-agent j10ce-qos-controller-manager j10ce-qos-scheduler
JOBS ?= 2
PINNED := pyproject.toml requirements/host.txt requirements/dev.txt
# What is downloaded is what its pin says, to the last bit; our own package is built here, by what was pinned.
PIP := $(BIN)/python -m pip -q --disable-pip-version-check install
FROM_PINS := $(PIP) --require-hashes -r requirements
STEPS = $(if $(filter-out setup up link,$(MAKECMDGOALS)),4,3)
FROM_CLONE := $(PIP) --no-deps --no-build-isolation -e .

.PHONY: help setup link setup-dev setup-lab setup-compat up check lint format test test-all test-compat test-long
.PHONY: test-quick test-host test-vm test-systemd test-kube mutants bench docs generate build docker-build pins clean

help:  ## list the verbs
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.setup  ## the j10ce-qos command: venv, pinned packages, link on PATH
	@tools/link-commands $(addprefix $(BIN)/,$(COMMANDS))

link: $(VENV)/.setup  ## the commands on PATH are those of this clone from now on, whatever they were
	@tools/link-commands --replace $(addprefix $(BIN)/,$(COMMANDS))

setup-dev: setup $(VENV)/.setup-dev  ## the above and what contributors need: pytest, mypy, ruff, ...

setup-lab: setup-dev  ## the above and what the lab needs: QEMU, a Debian kernel, a Kubernetes control plane (built once)
	@tools/apt-need qemu-system-x86_64:qemu-system-x86 busybox:busybox-static depmod:kmod dbus-daemon:dbus \
	    /lib/systemd/systemd:systemd /usr/lib/systemd/user/dbus.socket:dbus-user-session mke2fs:e2fsprogs
	$(LAB) fetch

setup-compat: setup-lab  ## the above and the oldest Kubernetes that is supported, v1.20.2 (built once)
	@tools/apt-need rsync jq make dpkg-source:dpkg-dev
	$(LAB) fetch --kubernetes old

$(VENV)/.setup: $(PINNED)
	@tools/stage 1 $(STEPS) "virtual environment" 10 tools/make-venv $(VENV) $(PYTHON)
	tools/stage 2 $(STEPS) "packages: requirements/host.txt, by hash" 20 $(FROM_PINS)/host.txt
	tools/stage 3 $(STEPS) "j10ce-qos: this clone, editable" 5 $(FROM_CLONE)
	touch $@

$(VENV)/.setup-dev: $(VENV)/.setup
	@tools/stage 4 $(STEPS) "packages: requirements/dev.txt, by hash" 30 $(FROM_PINS)/dev.txt
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

test: setup-dev  ## all that needs this machine only: quick tests, its own cgroups (root), the docs' commands; 10 minutes, set-up included
	@$(RUN) test

test-all: test setup-lab  ## make test, then what needs the lab: both guests, fleets on etcd, a current Kubernetes; 20 minutes more
	@$(RUN) test-all

test-compat: setup-compat  ## what depends on the version of Kubernetes, on 1.20.2; 10 minutes
	@$(RUN) test-compat

test-long: setup-lab  ## before an issue is resolved: other cgroup layouts, a million reservations, fail-overs, 2,000 examples of each property; hours
	@$(RUN) test-long

test-quick: setup-dev  ## pure tests, a few minutes
	@$(PYTEST) -q -n $(JOBS)

test-host: setup-dev  ## everything that needs this machine's own kernel: enforcement, agent, command line (root)
	@$(RUN) test host shares

test-vm: setup-lab  ## enforcement in the plain cgroup v2 guest
	@$(RUN) test-all guest-v2

test-systemd: setup-lab  ## the suite of the guest whose PID 1 is systemd
	@$(RUN) test-all guest-systemd

test-kube: setup-lab  ## everything that needs a Kubernetes control plane: CRDs, managers, agents, webhooks, extender (root)
	@$(RUN) test-all kube

bench: setup-dev  ## print the numbers that the README promises; installs the compiler that it needs
	@tools/apt-need cc:gcc /usr/include/stdio.h:libc6-dev
	$(BIN)/python -m benchmarks

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
	@rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .test-logs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
