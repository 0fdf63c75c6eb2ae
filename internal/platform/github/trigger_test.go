package github_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/platform/github"
	"remote-agent/internal/waittest"
)

func TestOrders(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	for body, want := range map[string]string{
		"@remote-agent hi":                               "hi",
		"@Remote-Agent hi":                               "hi",
		"@REMOTE-AGENT: hi":                              "hi",
		"@remote-agent, hi":                              "hi",
		"@remote-agent[bot] hi":                          "hi",
		"please help @remote-agent":                      "please help",
		"please @remote-agent help":                      "please help",
		"is it broken, @remote-agent?":                   "is it broken, ?",
		"(@remote-agent) see this":                       "() see this",
		"@remote-agent!":                                 "",
		"@remote-agent":                                  "",
		"**@remote-agent** hi":                           "**** hi",
		"_@remote-agent_":                                "",
		"# @remote-agent\n\nhi":                          "# \n\nhi",
		"- @remote-agent do it":                          "- do it",
		"line one\n@remote-agent two":                    "line one\ntwo",
		"@remote-agent /plan add x":                      "/plan add x",
		"@remote-agent /plan add x\nmore\n\nwords":       "/plan add x\nmore\n\nwords",
		"@remote-agent\n/plan add x":                     "/plan add x",
		"It fails.\n\n@remote-agent /plan fix\nthanks":   "/plan fix\nIt fails.\n\n\nthanks",
		"@remote-agent: /status":                         "/status",
		"/agent":                                         "/help",
		"/agent status":                                  "/status",
		"/AGENT Status":                                  "/Status",
		"/agent command-set x y":                         "/command-set x y",
		"/agent plan add x\nand y":                       "/plan add x\nand y",
		"/agent new\n/agent fix the bug":                 "/new\nfix the bug",
		"/agent new\n/agent status":                      "/new\n/status",
		"/agent a\n```\n/agent b\n```\n/agent c":         "a\n```\n/agent b\n```\nc",
		"/agent /custom a b":                             "/custom a b",
		"/agent agent reviewer":                          "/agent reviewer",
		"/agent agent":                                   "/agent",
		"/agent agent of change, what is it?":            "agent of change, what is it?",
		"/agent schedule on":                             "/schedule on",
		"/agent schedule a call with Ann":                "schedule a call with Ann",
		"/agent why is it red?":                          "why is it red?",
		"/agent cost of this change is too high":         "cost of this change is too high",
		"/agent help me with this test":                  "help me with this test",
		"/agent new endpoint for users, please":          "new endpoint for users, please",
		"/agent help plan":                               "/help plan",
		"/agent stop right now, please":                  "/stop right now, please",
		"https://x.example/a @remote-agent hi":           "https://x.example/a hi",
		"Hello.\n/agent plan x":                          "/plan x\nHello.",
		"@remote-agent /agent status":                    "/agent status",
		"text <!-- secret --> @remote-agent hi":          "text  hi",
		"@remote-agent\u200b hi":                         "hi",
		"@remote-agent run ```go test``` now":            "run ```go test``` now",
		"@remote-agent\n```\n@remote-agent in code\n```": "```\n@remote-agent in code\n```",
		"hey @remote-agent.":                             "hey .",
		"@remote-agentさん":                                "さん",
		"<b>@remote-agent</b> hi":                        "<b></b> hi",
		"> somebody said\n\n@remote-agent agree?":        "> somebody said\n\nagree?",
		"- [ ] @remote-agent x":                          "- [ ] x",
		"<code>x</code> @remote-agent y":                 "<code>x</code> y",
		"<a id=1>@remote-agent y</p>":                    "<a> y</p>",
		"see <!-- <code> --> @remote-agent </code>":      "see  </code>",
		"`<code>` @remote-agent `</code>`":               "`<code>` `</code>`",
		"\r\n@remote-agent\r\nhi\r\n":                    "hi",
	} {
		got, ok := h.Order(body)
		if body == "@remote-agent\n/plan add x" {
			got = strings.TrimSpace(got)
		}
		if !ok || got != want {
			t.Errorf("%q: %q, %v; want %q", body, got, ok, want)
		}
	}
	for _, body := range []string{
		"", "hi", "remote-agent hi", "@remote-agents hi", "@remote-agent-2 hi", "@remote-agent_x", "@remote-agent/team hi", "me@remote-agent.com", "a@remote-agent",
		"`@remote-agent` hi", "```\n@remote-agent hi\n```", "~~~\n/agent status\n~~~", "    @remote-agent hi", "    /agent status", "> @remote-agent hi", "> > /agent status",
		"<!-- @remote-agent hi -->", "<!--\n@remote-agent\n/agent status\n-->", "<!-- @remote-agent", "<div>\n@remote-agent\n</div>", "<a title=\"@remote-agent\">x</a>",
		"[@remote-agent](https://x.example)", "![@remote-agent](https://x.example)", "https://github.com/@remote-agent", "see https://x.example/?q=@remote-agent", "(www.x.example/a,@remote-agent)",
		`\@remote-agent hi`, "&#64;remote-agent hi",
		"<code>@remote-agent</code> hi", "x <CODE class=\"a\">y **@remote-agent**</CODE >", "<code>\n\n@remote-agent hi\n\n</code>", "so <pre>\n/agent status\n</pre>",
		"<blockquote><blockquote>a</blockquote>@remote-agent hi</blockquote> x", "<code><CODE></code>@remote-agent</code>",
		"a <tt>@remote-agent</tt>", "<a href=\"https://x.example\">@remote-agent</a>", "see <blockquote><a name=x> @remote-agent hi</blockquote>",
		"[x]: y \"@remote-agent\"", "@remote\u200b-agent hi", "x /agent status", "/agents status", "/agentstatus", "`/agent status`", "- /agent", "@other hi",
		"On Monday ann wrote:\n> @remote-agent hi\n",
	} {
		if got, ok := h.Order(body); ok {
			t.Errorf("%q is for the bot: %q", body, got)
		}
	}
}

// The time of reading grows with the length and not with its square.
func TestHostileTextsAreRead(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	for name, unit := range map[string]string{
		"quotes": "> ", "lists": "- ", "numbers": "1. ", "brackets": "[", "images": "![", "stars": "*a ", "backticks": "`a``", "comments": "<!--", "mentions": "@remote-agent ", "addresses": "https://x.example/?@remote-agent,",
		"entities": "&#64;", "tags": "<a href=x ", "definitions": "[a]: b\n", "links": "[a](b ", "underscores": "_a", "notes": "[^a]: b\n", "tables": "|a", "closings": "closes ",
	} {
		length := 5_000
		if name == "definitions" || name == "notes" {
			length = 20_000 // the parser alone takes much longer for so many
		}
		text := "@remote-agent " + strings.Repeat(unit, length/len(unit))
		begin := time.Now()
		h.Order(text)
		h.Defused(text)
		if took := time.Since(begin); waittest.TooLong(took, 15*time.Second) {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

// A row of a table is padded to the width of the first, and an address that is defined
// once is shown wherever it is used: what makes much of little is text.
func TestBombsTakeLittle(t *testing.T) {
	h := newHook(t)
	for name, source := range map[string]string{
		"table":   strings.Repeat("|a", 4000) + "\n" + strings.Repeat("|-", 4000) + "\n" + strings.Repeat("|\n", 4000),
		"address": "[a]: https://example.com/" + strings.Repeat("b", 10_000) + "\n\n" + strings.Repeat("[a] ", 3000),
		"lists":   strings.Repeat("1. ", 300) + "a\n" + strings.Repeat("b\n", 8000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h.Order("@remote-agent hello\n\n" + source)
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 40 {
			t.Errorf("%s: %d bytes take %d MB", name, len(source), took)
		}
	}
}

// Accounts that a company manages have its short code behind an underscore.
func TestTheBotIsCalledByTheNameOfAManagedAccount(t *testing.T) {
	t.Parallel()
	h := newHook(t, func(c *github.Config) { c.Mention = "@bot_acme" })
	if text, ok := h.Order("please, @bot_acme, _do it_"); !ok || text != "please, , _do it_" {
		t.Errorf("it reads %q, %v", text, ok)
	}
	for _, other := range []string{"@bot do it", "@bot_acme2 do it", "@bot_acme_x do it"} {
		if text, ok := h.Order(other); ok {
			t.Errorf("%q is for it: %q", other, text)
		}
	}
}
