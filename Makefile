# Every target sees to its own set-up: what is missing is listed and installed (see scripts/setup).
#   YES=1                      install without asking
#   WEIGHBRIDGE_NO_INSTALL=1   install nothing, print the lines to type
#   WEIGHBRIDGE_REQUIRE=all    fail where a test skips what scripts/allowed-skips does not list

SHELL := /bin/bash
# Where rustup puts Rust, for a shell that was opened before it was there.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

.PHONY: help demo demo-hosts test test-system bench

help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: ## build, weigh this machine with the plan `quick` (under 4 minutes), show the page; RUN=FOLDER names its folder
	@scripts/setup demo
	@scripts/demo

demo-hosts: ## hosts in namespaces and a guest in software: weighed together, across, and compared (needs root; about 10 minutes)
	@scripts/setup demo demo-hosts
	@scripts/demo-hosts

test: ## formatting, clippy, licences and every test that needs no VM and no browser
	@scripts/setup demo test
	cargo fmt --check
	cargo clippy --workspace --all-targets --release -- -D warnings
	@scripts/test test -- --show-output
	@scripts/check-selections

test-system: ## the tests that need a VM or a browser
	@scripts/setup demo test test-system
	@scripts/test test-system --tests -- --ignored --show-output

bench: ## our speed against the field's own tools, in turns; ARGS="himeno --pairs 11" chooses
	@scripts/setup demo bench
	cargo build --release -p weighbridge -p wb-bench
	cargo run --release -p wb-bench -- $(ARGS)
