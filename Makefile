# For newcomers: `make install`, `make demo` and `make test`.  Needs Python >= 3.11 with its venv module, and make; nothing else.

PYTHON ?= python3
VENV ?= .venv

REFERENCE ?= $(VENV)-reference
NIGHTLY ?= $(VENV)-nightly
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
PACKAGES := core templates suite $(patsubst %/pyproject.toml,%,$(sort $(wildcard libraries/*/pyproject.toml plugins/*/*/pyproject.toml)))
PROJECTS := constraints.txt pyproject.toml suite/contents.py $(addsuffix /pyproject.toml,$(PACKAGES)) \
  $(wildcard libraries/*/src/*/*.[ch])
SOURCES := $(addsuffix /src,$(PACKAGES))

.PHONY: install demo test test-real programs isolated nightly differential check bench messages pictures walks vendor dist wheelhouse clean

install: $(VENV)/.installed
	@echo "$(VENV) is ready; next: . $(BIN)/activate"

demo: $(VENV)/.installed
	@sh benchmarks/demo.sh $(BIN)/aiperf

# Programs start a few hundred times, so Python may keep their bytecode.  Tests marked `timing` run one after the other, with
# nothing of ours beside them; those of packages are found by that word.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.installed-tests
	@$(MAKE) --no-print-directory -j3 programs isolated check
	$(BIN)/python tests/suite_run.py -m 'timing and not long' $$(grep -rl --include='test_*.py' 'mark\.timing' tests core/tests plugins)

# Tests of the whole program and of the repository.  More processes than processors: they wait for half of their time.
programs: $(VENV)/.installed-tests
	$(BIN)/python tests/suite_run.py tests -m 'not timing and not long' -n 3 --dist loadfile --no-loadscope-reorder

# Tests of the kernel and of each package, in an environment of its own.
isolated: $(VENV)/.installed-tests
	$(BIN)/python tests/isolated.py

# Tests marked `long`, ten minutes of fuzzing for each target and for the reader's ring, the transport under sanitizers, and every
# cell of the fault, kill and away tables; writes docs/reliability.md.  Words for the script:
# make nightly NIGHTLY="--keep"
nightly: $(VENV)/.installed-tests
	$(BIN)/python tests/suite_run.py tests -m long
	$(BIN)/python tests/fuzz/fuzz.py
	$(BIN)/python tests/fuzz/ring.py
	$(BIN)/python tests/fuzz/sanitized.py
	$(BIN)/python tests/nightly.py $(NIGHTLY)

# Endpoint types against real servers: llama.cpp, vLLM on the CPU, transformers serve, Triton, MLServer.  They are installed once into
# ~/.cache/aiperf-real (AIPERF_REAL_CACHE), 5 GB; what can't be had is skipped with the reason.  make test-real REAL="-k llamacpp"
test-real: $(VENV)/.installed-tests
	$(BIN)/python -m pytest -o addopts="-q --import-mode=importlib -rs" -p no:xdist tests/real $(REAL)

# Beside the reference, whose environment is made here unless AIPERF_REFERENCE names its program: input files, templates, routes, and
# benchmarks and graders, for which it needs the packages of its extra `accuracy`.  lighteval comes without its own requirements
# (torch, several GB): tests/differential/absent.py stands in for them.
HAS_EXTRAS := from importlib.metadata import version; [*map(version, ("aiperf", "deepeval", "lighteval", "sympy"))]
differential: $(VENV)/.installed-tests
	@test -n "$$AIPERF_REFERENCE" || $(REFERENCE)/bin/python -c '$(HAS_EXTRAS)' 2>/dev/null || { \
	  $(PYTHON) -m venv $(REFERENCE) && \
	  $(REFERENCE)/bin/python -m pip --quiet --disable-pip-version-check --no-input install aiperf==0.13.0 deepeval sympy \
	    latex2sympy2-extended==1.0.6 && \
	  $(REFERENCE)/bin/python -m pip --quiet --disable-pip-version-check --no-input install --no-deps lighteval==0.13.0; } || \
	  echo "make: the reference can't be installed in $(REFERENCE) with all that it needs: tests without it are skipped" >&2
	@test -n "$$AIPERF_NIGHTLY" || $(NIGHTLY)/bin/python -c 'import aiperf' 2>/dev/null || { \
	  $(PYTHON) -m venv $(NIGHTLY) && \
	  $(NIGHTLY)/bin/python -m pip --quiet --disable-pip-version-check --no-input install \
	    aiperf-nightly==0.13.0.dev20261023; } || \
	  echo "make: the nightly build can't be installed in $(NIGHTLY): tests without it are skipped" >&2
	@AIPERF_NIGHTLY="$${AIPERF_NIGHTLY:-$$(test -x $(NIGHTLY)/bin/aiperf && echo $(abspath $(NIGHTLY))/bin/aiperf)}" \
	AIPERF_REFERENCE="$${AIPERF_REFERENCE:-$$(test -x $(REFERENCE)/bin/aiperf && echo $(abspath $(REFERENCE))/bin/aiperf)}" \
	  $(BIN)/python -m pytest -q -rs tests/differential

check: $(VENV)/.installed-tests
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES) benchmarks tests

# docs/troubleshooting.md, from what the program says.
messages: $(VENV)/.installed-tests
	@$(BIN)/python tests/messages.py

# docs/pictures/, from a simulated run and a simulated study: one minute.
pictures: $(VENV)/.installed-tests
	@$(BIN)/python tests/page_pictures.py

# What others wrote for pages, by npm, with the hashes of its pins.json.
vendor:
	@$(PYTHON) tests/vendor.py

# The stacks in docs/architecture.md, from a run.
walks: $(VENV)/.installed-tests
	@$(BIN)/python tests/walks.py

# Wheels and source distributions of all packages in dist/, and what they are made of.
dist: $(VENV)/.installed-tests
	@$(BIN)/python tests/dist.py --output dist

# The same, and wheelhouse/: all that `pip install --no-index --find-links wheelhouse aiperf-suite` needs.  make wheelhouse EXTRAS=plots
wheelhouse: $(VENV)/.installed-tests
	@$(BIN)/python tests/dist.py --output dist --wheelhouse wheelhouse --extras "$(EXTRAS)"

bench: $(VENV)/.installed-tests
	$(BIN)/python benchmarks/bench.py

clean:
	rm -rf $(VENV) $(REFERENCE) $(NIGHTLY) dist wheelhouse .mypy_cache .ruff_cache .pytest_cache .hypothesis artifacts benchmarks/out benchmarks/truthd/truthd benchmarks/truthd/sender

# Every package is installed editable, with the versions of constraints.txt.  The build backends come first and are shared:
# an environment of its own for each of the packages would take minutes.  uv_build looks for its own program in PATH.
$(VENV)/.installed: $(PROJECTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $(PYTHON) is older than Python 3.11; name a newer one: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "make: $(PYTHON) can't make a virtual environment; install its venv module" >&2; exit 1; }
	@echo "setting up $(VENV), once: what builds packages"
	@$(PIP) install -c constraints.txt 'uv_build>=0.9,<1' hatchling pyyaml
	@echo "setting up $(VENV), once: $(words $(PACKAGES)) packages of this repository and what they need, a few minutes"
	@PATH="$(abspath $(BIN)):$$PATH" $(PIP) install -c constraints.txt --no-build-isolation $(addprefix -e ./,$(PACKAGES))
	@echo "setting up $(VENV): done"
	@touch $@

$(VENV)/.installed-tests: $(VENV)/.installed
	@echo "setting up $(VENV), once: what tests need"
	@$(BIN)/python tests/requirements.py > $(VENV)/tests.txt
	@$(PIP) install -c constraints.txt -r $(VENV)/tests.txt
	@touch $@
