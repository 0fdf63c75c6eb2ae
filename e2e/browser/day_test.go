package browser

import (
	"strings"
	"testing"

	"remote-agent/e2e/internal/bot"
	"remote-agent/e2e/internal/need"
	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
)

// From the first start to the bill, in the browser alone: a repository, a plan that is
// changed before it is executed, work that is watched, read as a diff, and stopped.
func TestAChangeFromTheFirstStartToItsCosts(t *testing.T) {
	t.Parallel()
	day(t, func(w *window, page string, parts ...string) { w.sees(parts...) })
}

// The same without JavaScript: a person loads the page again to see more of it.
func TestAChangeWithoutJavaScript(t *testing.T) {
	t.Parallel()
	day(t, func(w *window, page string, parts ...string) { w.finds(page, parts...) }, (*window).withoutScript)
}

func day(t *testing.T, sees func(w *window, page string, parts ...string), before ...func(*window)) {
	t.Helper()
	need.Chromium(t)
	b := bot.New(t).With(map[string]string{"TELEGRAM_OWNER_IDS": "42"})
	_, url := b.WithRepository("acme/sum", bot.SumRepo)
	b.Start()
	w := open(t, b.Address())
	for _, f := range before {
		f(w)
	}
	w.signsIn(b.OwnerLink())
	chat := w.plans(b, url, sees)
	session := w.executes(b, chat, sees)
	w.stopsAnother(b, session, sees)
	w.finds("/costs?by=model&since=all", "test-model", "tokens in")
	w.finds(session+"?tab=cost", "test-model")
}

// plans has a repository cloned and a plan made and changed in a chat, whose page it
// returns.
func (w *window) plans(b *bot.Bot, url string, sees func(*window, string, ...string)) (chat string) {
	w.t.Helper()
	w.visit("/chat")
	w.writes("textarea[name=text]", "/clone "+url)
	w.presses("Send")
	w.sees("All conversations", "/clone")
	chat, _, _ = strings.Cut(w.path(), "#")
	sees(w, chat, "Cloned")
	b.Model.Enqueue(openai.Text("1. Add instead of subtracting.\n2. Run the test."))
	w.writes("textarea[name=text]", "/plan make sum.sh add")
	w.presses("Send")
	w.sees("/plan make sum.sh add")
	sees(w, chat, "Plan p-1, version 1", "Run the test.")
	w.finds("/", "p-1")
	w.presses("Review")
	w.sees("Run the test.")
	w.presses("Edit the plan")
	w.writes("textarea[name=text]", "1. Add instead of subtracting.\n2. Leave the test alone.")
	w.presses("Save as a new version")
	w.sees("Leave the test alone.")
	w.finds("/approvals", "Leave the test alone.")
	return chat
}

// executes approves the plan, watches it being executed in its session, whose page it
// returns, and reads the diff there.
func (w *window) executes(b *bot.Bot, chat string, sees func(*window, string, ...string)) (session string) {
	w.t.Helper()
	gate := emulator.NewGate()
	b.Model.Enqueue(
		openai.Calls(openai.Call{ID: "c1", Name: "edit_file", Arguments: `{"path":"sum.sh","old":"$1 - $2","new":"$1 + $2"}`}),
		openai.Reply(openai.Delta("The sum is right. "), openai.Gate(gate), openai.Delta("I left the test alone.")))
	w.presses("Approve and run")
	w.sees("It runs now.")
	w.finds("/", "Running")
	w.finds("/sessions", "/execute p-1")
	w.presses("/execute p-1")
	w.sees("Leave the test alone.")
	session, _, _ = strings.Cut(w.path(), "?")
	sees(w, session, "edit_file", "Stop")
	gate.Open()
	sees(w, session, "I left the test alone.")
	w.finds(session+"?tab=changes", "sum.sh", "-echo $(($1 - $2))", "+echo $(($1 + $2))")
	w.finds(session+"?tab=plan", "Leave the test alone.")
	w.finds(chat, "I left the test alone.")
	return session
}

// stopsAnother begins another turn in a session's page and stops it there.
func (w *window) stopsAnother(b *bot.Bot, session string, sees func(*window, string, ...string)) {
	w.t.Helper()
	never := emulator.NewGate()
	defer never.Open()
	b.Model.Enqueue(openai.Reply(openai.Delta("This takes long. "), openai.Gate(never), openai.Delta("never said")))
	w.visit(session)
	w.writes("textarea[name=text]", "take your time")
	w.presses("Send")
	w.sees("Sent.")
	sees(w, session, "take your time", "Stop")
	w.presses("Stop")
	w.sees("topp")
	sees(w, session, "stopped")
	if got := w.text(); strings.Contains(got, "never said") {
		w.t.Errorf("it went on:\n%s", got)
	}
}
