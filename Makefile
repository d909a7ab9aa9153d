# Two commands set a machine up: `make lab` and `make test`. Both need Python 3.11 or newer and a network to the package
# registries, and are quick the second time. Logic longer than a line lives in scripts/.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.installed-test
ON_ALL_CORES := --numprocesses=auto --dist=worksteal # a worker that is done takes over tests of those that are not

EVALUATIONS := eager staging l2hmc resnet50 transformer compile_device memory promises

.PHONY: help lab lab-check test test-quick checks collected lint format-check types imports javascript-test unit-test browser browser-test format js architecture pictures docs docs-check dist bench array-api clean
.DEFAULT_GOAL := help
ifndef SIDE_BY_SIDE # tests have all cores, and would set up the same environment at once
.NOTPARALLEL:
endif

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

lab: $(VENV)/.installed-workshop ## set up, and open JupyterLab at the first lesson
	$(RUN) scripts/lab.py open

lab-check: $(VENV)/.installed-workshop ## the same without a browser, for CI: does the server serve the lesson?
	$(RUN) scripts/lab.py check

test: checks unit-test browser-test ## set up, and check everything

checks: $(READY) ## all that runs no test of Python, two at a time, while a browser is installed
	$(MAKE) SIDE_BY_SIDE=1 --jobs=3 --output-sync browser types lint format-check imports javascript-test collected

# So that the tests are compiled once, while there is a core to spare: each worker of pytest would take 20 s for it. What
# cannot be collected is an error of the tests themselves.
collected: $(READY)
	-@$(RUN) -m pytest --ignore=tests/browser --collect-only -qq > /dev/null

test-quick: $(READY) ## pytest while you work: few parameters of each test; no browser, no notebook, nothing slow
	$(RUN) -m pytest --ignore=tests/browser -m "not notebook and not slow" --thin=5 $(ON_ALL_CORES)

lint: $(READY) ## ruff's rules
	$(RUN) -m ruff check .

format-check: $(READY) ## is everything formatted?
	$(RUN) -m ruff format --check .

types: $(READY) ## mypy, strict
	$(RUN) -m mypy

# Without its cache, which goes stale when a package gains its __init__.py.
imports: $(READY) ## the contracts between layers
	$(VENV)/bin/lint-imports --no-logo --no-cache

javascript-test: $(READY) ## the views' JavaScript, where there is a Node
	$(RUN) scripts/javascript.py test

unit-test: $(READY) ## pytest with all cases on all cores, without the browser's tests
	LIMELIGHT_TESTS=full $(RUN) -m pytest --ignore=tests/browser $(ON_ALL_CORES) --junitxml=artefacts/pytest.xml

browser: $(READY) ## a Chromium, where there is none
	$(RUN) scripts/browser.py

browser-test: browser ## the tests in a real JupyterLab and Chromium
	$(RUN) -m pytest tests/browser $(ON_ALL_CORES) --maxprocesses=4 --junitxml=artefacts/pytest-browser.xml

format: $(READY) ## format, and mend what ruff can mend
	$(RUN) -m ruff check --fix-only .
	$(RUN) -m ruff format .

js: $(READY) ## rebuild the views' JavaScript (needs Node)
	$(RUN) scripts/javascript.py build

architecture: $(READY) ## draw the rooms and their imports anew, for docs/architecture.md
	$(RUN) scripts/architecture.py

pictures: $(READY) ## take the README's pictures anew
	$(RUN) scripts/screenshot.py notebooks/01_first_light.ipynb docs/images --cell '%%stage=first_light' --width 1120

docs: $(VENV)-docs/.installed-docs ## the documentation as a site, in artefacts/docs/html, in an environment of its own
	$(VENV)-docs/bin/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs artefacts/docs/html

docs-check: $(READY) ## look at that site in a real browser (needs Node's packages: npm ci, in widgets/js)
	$(RUN) scripts/documentation_check.py

dist: docs $(READY) ## the source archive, with that site in it, and the wheel, in artefacts/dist
	$(RUN) -m hatchling build --target sdist --target wheel --directory artefacts/dist

bench: $(VENV)-bench/.installed-bench ## measure against the peers, in an environment of their own
	@status=0; for name in $(EVALUATIONS); do \
		echo "== $$name"; $(VENV)-bench/bin/python benchmarks/$$name.py || status=1; done; exit $$status

array-api: ## let the public suite of the Array API judge: make array-api SUITE=<checkout of data-apis/array-api-tests>
	@test -n "$(SUITE)" || { echo "Say where the suite is: make array-api SUITE=path/to/array-api-tests"; exit 2; }
	$(PYTHON) scripts/array_api.py "$(SUITE)"

clean: ## remove environments, caches and artefacts
	rm -rf $(VENV) $(VENV)-docs $(VENV)-bench $(VENV)-array-api artefacts .hypothesis .*_cache widgets/js/node_modules

$(VENV)/.installed-%: pyproject.toml scripts/environment.py $(wildcard engine/native/src/*)
	$(PYTHON) scripts/environment.py $* --venv $(VENV)

$(VENV)-bench/.installed-bench: pyproject.toml scripts/environment.py
	$(PYTHON) scripts/environment.py bench --venv $(VENV)-bench

$(VENV)-docs/.installed-docs: pyproject.toml scripts/environment.py
	$(PYTHON) scripts/environment.py docs --venv $(VENV)-docs
