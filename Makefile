# The commands of this project. Each is a thin name for a script or a cargo call, so that people and
# machines run the same thing. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help up test test-full bench fmt lint schema clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## install what is missing, build, and start Gleaner (UP_ARGS for `gleaner up`)
	@scripts/up $(UP_ARGS)

test: ## everything a change must pass: format, lints, licences, all tests, the real clients
	@scripts/test

test-full: ## `make test` and the long forms: advisories, PostgreSQL 15 to 18, a clean machine
	@scripts/test-full

bench: ## measure Gleaner next to raw PostgreSQL and pgmq (BENCH_ARGS, e.g. BENCH_ARGS=--help)
	@scripts/install up
	@scripts/cargo run --release --locked -p gleaner-bench --features peers -- $(BENCH_ARGS)

fmt: ## format the Rust code
	@scripts/cargo fmt --all

lint: ## clippy with warnings denied, and the dependency policy
	@scripts/cargo clippy --workspace --all-targets --locked -- -D warnings
	@scripts/deny licenses bans sources

schema: ## rewrite crates/gleaner/sql/schema.sql from the migrations
	@UPDATE_SCHEMA=1 scripts/cargo test --locked -p gleaner --test schema -- committed

clean: ## remove everything built or fetched (target/); data of running servers lives elsewhere
	rm -rf target
