# Run "make help" for a list of targets. They need Go, Node with npm, and make.

packages := ./...
sources  := cmd e2e handlers migrations models static templates tools/deployment
version  := $(shell sed -n 's/^const version = "\(.*\)"$$/\1/p' cmd/portal/version.go)
npm_done := node_modules/.package-lock.json
npm_tools := node_modules/.tools
htmx     := static/vendor/htmx.min.js
tokens   := templates/highlighted/tokens.json
assets   := $(htmx) $(tokens)
# Those of tools/go.mod. Building golangci-lint alone takes minutes, so each target names what it
# needs.
release_tools := bin/tools/go-licenses bin/tools/cyclonedx-gomod bin/tools/govulncheck
check_tools   := $(release_tools) bin/tools/gofumpt bin/tools/golangci-lint bin/tools/keyed bin/tools/oapi-codegen
livekit  := bin/tools/livekit-server bin/tools/echo-agent
mail_servers := $(if $(filter Linux,$(shell uname)),bin/tools/postfix bin/tools/opensmtpd)
# Gin's codec for MessagePack would add 3 MB and 30 ms of start. With the same flags everywhere,
# builds, tests and checks share compiled packages. Only the race detector has others. A tool may
# look for the Go tree, whose path -trimpath removes.
export GOFLAGS += -tags=nomsgpack -trimpath
export CGO_ENABLED = 0
FUZZTIME ?= 1m
CHAOSTIME ?= 10m
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

.PHONY: help run demo build release assets test docs-test check check-code check-release screenshot bench chaos fuzz fmt
.DELETE_ON_ERROR:

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

run: build ## Serve the portal on http://localhost:8080 with a demo account and SQLite under data/
	@exec bin/portal serve --demo

demo: build $(npm_tools) $(livekit) ## Serve the portal with LiveKit and a customer's site with a voice widget
	@exec tools/demo

build: $(assets) ## Build bin/portal, one static binary
	go build -ldflags '-s -w' -o bin/portal ./cmd/portal

release: $(assets) $(release_tools) ## Build the archives for PLATFORMS, their lists of components, notes and checksums under dist/
	tools/release $(version) $(PLATFORMS)

assets: $(assets) ## Make the files that the program embeds: browser assets and highlighted examples

test: $(npm_tools) $(assets) $(livekit) bin/tools/gitleaks $(mail_servers) ## Run all tests but docs-test on SQLite, PostgreSQL and a real browser
	tools/install-test-packages
	tools/test

docs-test: $(npm_tools) $(assets) $(livekit) ## Run the backends, gateways, receivers and verifiers of the documentation
	tools/install-test-packages
	tools/test docs

check: ## Check format, vet, lint, modules, openapi.json, documentation with docs-test, deployment files, vulnerabilities, licenses and the release
	tools/install-test-packages
	@# The programs of docs-test mostly wait, and npm, downloads and archives use one processor.
	@$(MAKE) --jobs=2 check-code docs-test check-release

# golangci-lint runs all analyzers of go vet.
check-code: $(npm_tools) build $(check_tools) bin/tools/ogen
	tools/check-format $(sources)
	bin/tools/keyed $(packages)
	go vet -C e2e/echo
	go vet -C tools/deployment
	bin/tools/golangci-lint run
	go mod tidy -diff
	go mod tidy -C e2e/echo -diff
	go mod tidy -C tools/deployment -diff
	go mod verify
	tools/check-openapi
	tools/check-agent-docs
	go test -C tools/deployment -count=1
	tools/check-vulnerabilities
	tools/check-licenses

check-release: $(npm_tools) $(assets) $(release_tools)
	tools/check-release

screenshot: build $(npm_tools) ## Take the picture of README.md with Chromium
	tools/screenshot

bench: $(assets) ## Measure the speed of authentication with the flags in BENCH, such as -short
	go run ./cmd/bench $(BENCH)

chaos: $(assets) ## Inject faults into a deployment for ten minutes or CHAOSTIME, and check its consistency
	tools/install-test-packages
	go test ./e2e/chaos -count=1 -v -timeout 0 -args -duration $(CHAOSTIME)

fuzz: $(assets) ## Run every fuzz target, each for a minute or FUZZTIME
	tools/fuzz $(FUZZTIME)

fmt: bin/tools/gofumpt ## Format the Go sources
	bin/tools/gofumpt -w $(sources)

# npm writes this file when it has installed the packages.
$(npm_done): package.json package-lock.json .npmrc
	npm ci --omit=dev
	@touch $@

# The tests and checks need the tools too.
$(npm_tools): package.json package-lock.json .npmrc
	npm ci
	@touch $(npm_done) $@

$(htmx): $(npm_done)
	@mkdir -p $(@D)
	cp node_modules/htmx.org/dist/$(@F) $@

# The colors of the code examples.
$(tokens): go.mod $(wildcard cmd/highlight/* handlers/portal/reference/*.go templates/*.go) handlers/api/openapi.json \
		$(wildcard templates/documentation/snippets/* templates/integration/*/*)
	go run ./cmd/highlight

# A voice server and a voice agent for the tests. A clean build takes minutes; Go caches its
# packages.
bin/tools/livekit-server: tools/livekit/go.mod tools/livekit/go.sum
	@mkdir -p $(@D)
	go build -C tools/livekit -trimpath=false -o ../../$@ github.com/livekit/livekit-server/cmd/server
	@touch $@

# The tests send emails to both. Debian would install only one of them, and start it.
$(mail_servers): tools/unpack-package
	tools/unpack-package $(@F) $@

# The scanner for which the documentation has a rule.
bin/tools/gitleaks: tools/gitleaks/go.mod tools/gitleaks/go.sum
	@mkdir -p $(@D)
	go build -C tools/gitleaks -trimpath=false -o ../../$@ github.com/zricethezav/gitleaks/v8
	@touch $@

# A generator of clients that must accept openapi.json.
bin/tools/ogen: tools/ogen/go.mod tools/ogen/go.sum
	@mkdir -p $(@D)
	go build -C tools/ogen -trimpath=false -o ../../$@ github.com/ogen-go/ogen/cmd/ogen
	@touch $@

bin/tools/echo-agent: e2e/echo/main.go e2e/echo/go.mod e2e/echo/go.sum
	@mkdir -p $(@D)
	go build -C e2e/echo -o ../../$@
	@touch $@

bin/tools/keyed: tools/keyed/main.go

# The path of a package ends with the name of its program, or with a version after that.
$(check_tools): tools/go.mod tools/go.sum
	@mkdir -p $(@D)
	go build -C tools -trimpath=false -o ../$@ "$$(go -C tools list tool | grep -E '/$(@F)(/v[0-9]+)?$$')"
	@touch $@
