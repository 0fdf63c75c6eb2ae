.DEFAULT_GOAL := help
.PHONY: help run build release release-check fuzz test test-heavy test-postgres lint fmt generate demo bench screenshots e2e ci clean

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-15s %s\n", $$1, $$2}'

run: ## start the bot with a console chat
	go run ./cmd/bot

build: ## build ./bot as it is released: without cgo, without symbols
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bot ./cmd/bot

release-check: ## build for every target and check the result
	.ci/release-check

release: ## build archives and packages into dist/: make release VERSION=v1.2.3
	@deploy/release "$(VERSION)"

fuzz: ## fuzz every target for 5 seconds; FUZZTIME=5m for longer
	.ci/fuzz all $(or $(FUZZTIME),5s)

test: ## run the tests; PostgreSQL only if there is a server
	go test ./...

test-heavy: ## run the tests that have a larger size in full, such as 100,000 files
	.ci/heavy

test-postgres: ## run the tests with the race detector and fail without PostgreSQL
	REQUIRE_POSTGRES=1 go test -race $(foreach c,sqlite/lib libc memory,-gcflags=modernc.org/$(c)=-race=false) -timeout 45m ./...

lint: ## run golangci-lint
	golangci-lint run

fmt: ## format the code
	gofmt -w cmd internal migrations

generate: ## write the files that are made from code
	go run ./cmd/bot config example > .env.example.new && mv .env.example.new .env.example
	go test ./internal/conformance -run TestDocument -write
	go test ./docs -run TestPackHasTheDocument -write
	go test ./internal/chat -run TestReference -write
	go test ./internal/texts -run TestDocument -write
	go test ./migrations -run TestPackHasTheFiles -write # the schema is what the packed migrations make
	go test ./internal/store -run SchemaIsWhatTheMigrationsMake -write-schema
	go test ./migrations -run TestPackHasTheFiles -write

demo: ## play a conversation with emulated services
	go run ./cmd/bot demo

bench: ## measure with emulated services
	go run ./cmd/bot bench

screenshots: ## take the pictures of the README, in docs/img, with Chromium
	mkdir -p docs/img
	go build -o bot ./cmd/bot
	cd e2e && E2E_BOT=$(CURDIR)/bot SCREENSHOTS=$(CURDIR)/docs/img go test -count=1 -run TestScreenshots ./browser

e2e: ## run the bot against what others wrote; most of it needs npm
	e2e/run

ci: ## run everything that CI runs
	bash .ci/run

clean: ## remove what build made
	rm -f bot
