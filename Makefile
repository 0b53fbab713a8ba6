# The front door. Everything here sets itself up: a fresh Debian machine needs nothing else.
.DEFAULT_GOAL := help
SHELL := /bin/bash
DATA ?= demo-data
PYTHON := .venv/bin/python
SECONDS ?= 60

.PHONY: help demo build test fuzz bench check format generate clean setup-build setup-test

help:            ## show this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' | \
	  awk -F'|' '{printf "  make %-10s %s\n", $$1, $$2}'

setup-build:
	@tools/bootstrap.sh build
setup-test:
	@tools/bootstrap.sh test

build: setup-build  ## the command in build/bin/cutwater, the Python module in .venv
	@tools/build.sh release

demo: build      ## make photographs, load them, show what happens (DATA=folder: your own)
	@tools/demo.sh $(DATA)

test: setup-test ## all tests, C++ and Python, with sanitizers; last line: N passed, M failed
	@tools/build.sh release
	@tools/test.sh

fuzz: setup-test ## all fuzzers, SECONDS=60 in all; fails with the path of what was found
	@tools/build.sh fuzz
	@tools/fuzz.sh $(SECONDS)

bench: setup-test ## ours beside torch's DataLoader, same cores, same files
	@tools/build.sh release
	@$(PYTHON) bench/peers.py --peers torch
	@$(PYTHON) bench/memory.py

stages: setup-build ## single stages (entropy decoding, resize…) beside what bounds them
	@bench/stages/run.sh

check: setup-test ## format, clang-tidy, layers, generated files, types
	@tools/build.sh release
	@tools/check.sh

format: setup-test ## format C++ and Python in place
	@git ls-files -co --exclude-standard '*.h' '*.cc' | xargs clang-format -i
	@.venv/bin/ruff check --quiet --fix . ; .venv/bin/ruff format --quiet .

generate: build  ## rewrite what is made from the table of ops: _ops.py, docs/ops.md, _core.pyi
	@tools/generate.sh

clean:           ## remove what was built (not the virtual environments)
	@rm -rf build
