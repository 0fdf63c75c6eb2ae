// Package github emulates GitHub for one bot: the REST API, webhooks with their
// log of deliveries, and Apps with installations and tokens; with people,
// repositories, issues and pull requests, and a ledger of what the people would
// see.
//
// A test makes a Server, gives its URL and credentials to the bot, says where
// webhooks go, lets a Person do something and waits for what appears:
//
//	server := github.New(github.Options{})
//	if err := server.Start(); err != nil { ... }
//	defer server.Close()
//	server.AddRepo(github.Repo{Name: "acme/web", Collaborators: map[string]github.Permission{"ann": github.Write}})
//	server.SetHook(github.Hook{URL: botURL})
//
//	ann := server.Person("ann").In("acme/web")
//	sent := ann.OpenIssue("It is broken", "@remote-agent please look")
//	answer, err := server.WaitComment(ctx, "acme/web", sent.Number, func(c github.Comment) bool { return c.FromBot })
//
// Paths of the API begin at URL; "/api/v3" in front is accepted too. The
// operations, named as in GitHub's OpenAPI description, are in the table of
// routes.go, which has those that the bot calls: of apps, installations and their
// tokens, deliveries of the App, users, repositories, permissions, issues,
// comments, reactions, pull requests with files, reviews and review comments.
// Every answer carries the headers of the rate limit, reading answers an ETag,
// lists a Link.
//
// Refused with GitHub's status and words: bad and expired credentials, a JWT
// with wrong claims or signature, what the installation, its narrowed token or
// the person's role does not permit, what does not exist, malformed JSON, bodies
// and titles over their limits, archived repositories, pull requests that exist
// already or whose branches do not, and more calls than the primary and secondary
// limits allow. Where the public documentation is silent the emulator takes the
// stricter reading: nothing is readable without credentials, a token of an
// installation sees nothing outside of it, a User-Agent is required, and every
// POST that makes an issue, pull request, comment, review or reaction counts as
// creating content.
//
// Webhooks go to the App, and to hooks of repositories. Each is signed, has a
// GUID and stays in a log that the bot can list and redeliver from. As at
// GitHub, nothing is delivered again by itself. What the bot does comes back to
// it as events. SetNetwork loses, doubles and delays deliveries, from a seed.
//
// Not emulated: GraphQL, search, checks, contents, merging by the API, git
// itself (AttachGit says which branches exist), fine-grained rules of
// repositories, OAuth, and the rendering of Markdown.
//
// Faults are injected for each operation with Inject and InjectFunc.
package github
