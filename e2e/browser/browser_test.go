// Package browser uses the web pages as people do: in a real browser, with and without
// JavaScript, with keys and pointer, and lets axe look for what shuts people out.
package browser

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"remote-agent/e2e/internal/bot"
	"remote-agent/e2e/internal/need"
	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
)

// started returns a bot that runs, and a browser that is signed in as an owner.
func started(t *testing.T) (*bot.Bot, *window) {
	t.Helper()
	need.Chromium(t)
	b := bot.New(t).With(map[string]string{"TELEGRAM_OWNER_IDS": "42"})
	b.Start()
	w := open(t, b.Address())
	return b, w
}

// signsIn follows a link and begins a session.
func (w *window) signsIn(link string) {
	w.t.Helper()
	w.visit(link)
	w.presses("Sign in")
	w.sees("Needs you")
}

func TestAPlanInTheBrowser(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	link := b.OwnerLink()
	w.signsIn(link)

	other := open(t, b.Address())
	other.visit(link)
	other.sees("already used")
	other.visit("/sessions")
	other.sees("You need a link to sign in")

	decide(b, w)
	w.visit("/platforms")
	if near := w.number(`(() => { const [a, b] = document.querySelectorAll("main > .card"); return Math.round(b.getBoundingClientRect().top - a.getBoundingClientRect().bottom) })()`); near < 8 {
		t.Errorf("a platform is %d px from the next one", near)
	}
	w.visit("/chat")
	w.writes("textarea[name=text]", "a secret thought")
	w.visit("/account")
	w.presses("Sign out here")
	w.sees("You need a link to sign in")
	w.visit("/sessions")
	w.sees("You need a link to sign in")
	w.signsIn(b.OwnerLink())
	w.visit("/chat")
	if left := w.number(`document.querySelector("textarea[name=text]").value.length`); left != 0 {
		t.Error("what somebody was writing is there for whoever signs in behind them")
	}
}

// A double click sends a form once: a link signs in the one time that it works.
func TestAButtonPressedTwice(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	for range 3 {
		w.visit(b.OwnerLink())
		w.number(`(() => { const b = document.querySelector("main form button"); b.click(); setTimeout(() => b.click(), 3); return 1 })()`)
		w.sees("Remote Agent")
		w.sees("Needs you")
	}
}

// Single keys do nothing for who has switched them off, in this browser and from then on.
func TestKeysAreSwitchedOff(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.signsIn(b.OwnerLink())
	search := func() int64 {
		return w.number(`(() => {
			document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true}));
			return document.activeElement.id === "search" ? 1 : 0;
		})()`)
	}
	if search() == 0 {
		t.Error("the key does nothing")
	}
	w.presses("Keys")
	w.run(chromedp.Click(chromedp.CSS("#keys input"), chromedp.NodeVisible))
	w.presses("Close")
	for _, page := range []string{"", "/sessions"} {
		if page != "" {
			w.visit(page)
		}
		if w.number(`document.activeElement.blur() || 1`); search() == 1 {
			t.Errorf("the key was switched off and is heard %s", page)
		}
	}
	w.presses("Keys")
	w.run(chromedp.Click(chromedp.CSS("#keys input"), chromedp.NodeVisible))
	w.presses("Close")
	if search() == 0 {
		t.Error("the key cannot be switched on again")
	}
}

// Names and messages as long as they may be fit a page that is enlarged to 400 %, and what
// is chosen is seen in the colors of whoever sees few.
func TestWhoSeesLittleSeesAll(t *testing.T) {
	t.Parallel()
	need.Chromium(t)
	b := bot.New(t).With(map[string]string{"TELEGRAM_OWNER_IDS": "42"})
	name := "acme/" + strings.Repeat("repository", 8)
	_, url := b.WithRepository(name, bot.SumRepo)
	b.Start()
	b.Says("/clone " + url)
	b.Sees("Cloned")
	b.Model.Enqueue(openai.Text("Read."))
	b.Says("read this: " + strings.Repeat("word ", 700))
	b.Sees("Read.")
	w := open(t, b.Address())
	w.size(320, 800)
	w.signsIn(b.OwnerLink())
	w.finds("/sessions", "read this")
	if wide := w.number("document.documentElement.scrollWidth"); wide > 320 {
		t.Errorf("the page is %d px wide", wide)
	}
	w.number(`(() => { document.querySelector('.list a[href^="/sessions/"]').click(); return 1 })()`)
	w.sees("Starts the next turn.")
	if hidden := w.number(`[...document.querySelectorAll(".turn.user pre")].filter((e) => e.scrollHeight > e.clientHeight + 2).length`); hidden > 0 {
		t.Error("keys do not reach the rest of what a person wrote")
	}
	w.run(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}}}))
	for of, property := range map[string]string{".views a": "borderBottomColor", ".themes button": "backgroundColor"} {
		if colors := w.number(fmt.Sprintf("new Set([...document.querySelectorAll(%q)].map((e) => getComputedStyle(e).%s)).size", of, property)); colors != 2 {
			t.Errorf("%s: the chosen one is not to be told from others", of)
		}
	}
}

func TestWithoutJavaScript(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.withoutScript()
	w.size(320, 640)
	w.signsIn(b.OwnerLink())
	decide(b, w)
}

// decide reads a plan, changes it, lets it be executed, reads what came of it, and goes on.
func decide(b *bot.Bot, w *window) {
	w.t.Helper()
	b.Model.Enqueue(openai.Text("1. Add the flag.\n2. Test it."))
	b.Says("/plan add a --json flag")
	b.Sees("Plan p-1, version 1")
	w.finds("/", "p-1")
	w.presses("Review")
	w.sees("Add the flag.")
	w.presses("Edit the plan")
	w.writes("textarea[name=text]", "1. Add the flag.\n2. Test it twice.")
	w.presses("Save as a new version")
	w.sees("version 2")
	w.waits("what became of it is heard", `document.activeElement.id === "said"`)
	b.Sees("Test it twice", "Plan p-1, version 2")
	w.finds("/approvals", "Test it twice")

	gate := emulator.NewGate()
	b.Model.Enqueue(openai.Reply(openai.Delta("The first step is done. "), openai.Gate(gate), openai.Delta("Both steps are done.")))
	w.presses("Approve and run")
	b.Sees("The first step is done.")
	w.finds("/approvals", "Nothing is waiting for a decision.")
	w.finds("/", "Running")
	gate.Open()
	b.Sees("Both steps are done.")

	w.finds("/sessions", "/execute p-1")
	w.presses("/execute p-1")
	w.sees("Test it twice", "Both steps are done.")
	b.Model.Enqueue(openai.Text("You are welcome."))
	w.writes("textarea[name=text]", "thank you")
	w.presses("Send")
	b.Sees("You are welcome.")
	w.finds(w.path(), "thank you", "You are welcome.")
}

// What shuts people out is found in every page that the navigation names, empty and with
// something in it, on a phone and on a desk, in both themes.
func TestNobodyIsShutOut(t *testing.T) {
	t.Parallel()
	source := axe(t)
	need.Chromium(t)
	b := bot.New(t).With(map[string]string{"TELEGRAM_OWNER_IDS": "42", "TELEGRAM_ALLOWED_USER_IDS": "42,43"})
	b.Start()
	w := open(t, b.Address())
	w.signsIn(b.OwnerLink())
	w.audit(source, w.links("nav a"))

	b.Model.Enqueue(openai.Text("# What it does\n\nIt adds, and `sum.sh` prints:\n\n```sh\nsh sum.sh 2 3\n```\n\n| a | b |\n|---|---|\n| 1 | " + strings.Repeat("verylongword", 20) + " |"))
	b.Says("what does it do? " + strings.Repeat("verylongword", 20))
	b.Sees("What it does")
	b.Model.Enqueue(openai.Text("1. Add the flag.\n2. Test it."))
	b.Says("/plan add a --json flag")
	b.Sees("Plan p-1, version 1")
	b.Model.Enqueue(openai.Text("1. Add a test."))
	b.Telegram.Person(43).Says("/plan add a test")
	for _, stranger := range []int64{98, 99} {
		b.Telegram.Person(stranger).Says("let me in")
	}
	w.finds("/approvals", "p-2")
	w.finds("/people", "telegram/98", "telegram/99")
	pages := append(w.links("nav a"), "/account", "/no-such-page", "/costs?by=model&since=all", "/settings?show=all", "/docs/operations", "/docs/openapi", "/agents/new")
	w.visit("/sessions")
	w.audit(source, append(pages, w.links("main .list a")...))
}

// audit looks at pages as axe and as a narrow screen do.
func (w *window) audit(axe string, pages []string) {
	w.t.Helper()
	if len(pages) < 3 {
		w.t.Fatalf("pages: %q", pages)
	}
	for _, width := range []int64{320, 1280} {
		w.size(width, 800)
		for _, theme := range []string{"light", "dark"} {
			w.likes(theme)
			for _, page := range pages {
				w.visit(page)
				at := fmt.Sprintf("%s, %d px, %s", page, width, theme)
				for _, f := range w.findings(axe) {
					w.t.Errorf("%s: %s", at, f)
				}
				if wide := w.number("document.documentElement.scrollWidth"); wide > width {
					w.t.Errorf("%s: the page is %d px wide", at, wide)
				}
				if alike := w.number(`(() => {
					const names = [...document.querySelectorAll("main :is(button, summary, .button)")].map((e) => e.nodeName + (e.ariaLabel || e.textContent));
					return names.length - new Set(names).size;
				})()`); alike > 0 {
					w.t.Errorf("%s: %d buttons are called like another one", at, alike)
				}
				w.picture(strings.NewReplacer("/", "_", ",", "", " ", "_").Replace(at))
			}
		}
	}
}

func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(need.Package(t, "axe-core") + "/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// violation is what axe says about a page.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// findings are what shuts people out of the page that is open.
func (w *window) findings(axe string) (found []string) {
	w.t.Helper()
	all := ask(w, chromedp.Evaluate[[]violation](
		axe+`;axe.run(document, {resultTypes: ["violations"]}).then((r) => { if (!r.passes.length) throw "axe looked at nothing"; return r.violations; })`,
		chromedp.EvalAwaitPromise))
	for _, v := range all {
		if v.Impact != "serious" && v.Impact != "critical" {
			continue
		}
		for _, n := range v.Nodes {
			found = append(found, fmt.Sprintf("%s (%s): %s\n%s\n%s", v.ID, v.Impact, v.Help, n.HTML, n.FailureSummary))
		}
	}
	return found
}
