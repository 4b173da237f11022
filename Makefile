# Every target installs what it needs, after listing what is missing (see scripts/setup).
#   YES=1                      install without asking
#   WEIGHBRIDGE_NO_INSTALL=1   install nothing, print the commands
#   WEIGHBRIDGE_REQUIRE=all    fail if a test skips something that scripts/allowed-skips does not list

SHELL := /bin/bash
# rustup's folder, for shells that were started before Rust was installed.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

.PHONY: help demo demo-hosts endpoints lint test test-system test-peers test-contention test-long conformance bench package

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.* ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: ## build, measure this machine with the plan `quick` (under 4 minutes, longer with a large cache), write a page; RUN=FOLDER sets its folder
	@scripts/setup demo
	@scripts/demo $(ARGS)

demo-hosts: ## measure hosts in namespaces, traffic between them, and an emulated guest (requires root; about 10 minutes)
	@scripts/setup demo demo-hosts
	@scripts/demo-hosts $(ARGS)

endpoints: ## build the endpoints that ship into target/endpoints (about 6 minutes); ARGS="NAME…" selects some
	@scripts/setup demo endpoints
	@scripts/endpoints $(ARGS)

lint: ## check formatting, words, clippy, and that building a crate alone compiles nothing anew
	@scripts/setup demo test
	cargo fmt --check
	@scripts/check-words
	@scripts/check-docs
	cargo clippy --workspace --all-targets --release -- -D warnings
	@scripts/check-selections

test: ## run every test that needs no VM and no browser, licences included
	@scripts/setup demo test
	@scripts/test test

test-system: ## run the tests that need a VM or a browser
	@scripts/setup demo test test-system
	@scripts/test test-system --ignored --skip soak_ --skip shipped_ --skip contention_

test-peers: ## build endpoints of libp2p in Rust and Go, and measure them with each other (about 10 minutes)
	@scripts/setup demo test endpoints
	@scripts/endpoints rust-libp2p go-libp2p go-baselines
	@scripts/check-endpoints
	cargo test --release -p weighbridge --test suite -- --include-ignored --show-output peers_run::

test-contention: ## boot two emulated guests, and measure contention on them in short (about 11 minutes; requires root)
	@scripts/setup demo test-contention
	@scripts/test-contention

test-long: ## check links in doc comments, run tests that repeat others many times or start more guests, fuzz for a minute each
	@scripts/setup demo test test-system test-long
	RUSTDOCFLAGS="-A warnings -D rustdoc::broken_intra_doc_links" \
	    cargo doc --workspace --no-deps --document-private-items --release --quiet
	@scripts/test test-long --ignored soak_
	@scripts/fuzz 60

conformance: ## hold figures of other programs against their own reports (about 5 minutes); ARGS="fio --cases 20" selects
	@scripts/setup demo conformance
	@scripts/conformance $(ARGS)

bench: ## compare our speed with other tools, interleaved, and write docs/performance-figures.md; ARGS="himeno --pairs 11" selects rows
	@scripts/setup demo bench
	cargo build --release -p weighbridge -p wb-bench
	cargo run --release -p wb-bench -- --document docs/performance-figures.md $(ARGS)

package: ## build what a user installs into target/package: a tarball and a .deb
	@scripts/setup demo package
	@scripts/package
