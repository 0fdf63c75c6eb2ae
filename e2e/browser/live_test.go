package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
)

// An open page shows what happens without being loaded again, and leaves alone what
// somebody is doing in it.
func TestAnOpenPageGoesOn(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.run(command(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"}))
	w.signsIn(b.OwnerLink())
	w.sees("Nothing is running.")
	loaded := w.number("window.loaded = 7")

	gate := emulator.NewGate()
	b.Model.Enqueue(openai.Reply(openai.Delta("One moment. "), openai.Gate(gate), openai.Delta("It adds numbers.")))
	b.Says("what does it do?")
	w.sees("what does it do?", "Stop")
	gate.Open()
	b.Sees("It adds numbers.")
	w.sees("Nothing is running.", "done")
	if got := w.number("window.loaded"); got != loaded {
		t.Errorf("the page was loaded again: %d", got)
	}

	w.presses("what does it do?")
	w.sees("It adds numbers.")
	w.waits("the moment in the reader's zone", `document.querySelector("main time").title.includes("GMT+5:30")`)
	w.number("window.loaded = 7")
	w.writes("textarea[name=text]", "half a thought")
	w.presses("Delete")
	b.Model.Enqueue(openai.Text("It is tested."))
	b.Says("is it tested?")
	w.sees("is it tested?", "It is tested.")
	if got := w.number(`window.loaded + (document.querySelector("textarea[name=text]").value === "half a thought" ? 10 : 0) + (document.querySelector(".actions details[open]") ? 100 : 0)`); got != 117 {
		t.Errorf("what somebody was doing did not stay: %d", got)
	}

	b.Restart() // what was open goes on, although another process serves it
	b.Model.Enqueue(openai.Text("Still here."))
	b.Says("are you there?")
	w.sees("are you there?", "Still here.")
	if got := w.number("window.loaded"); got != 7 {
		t.Errorf("the page was loaded again: %d", got)
	}
}

// Who is signed out while they write something loses the page at its next change, and what
// they wrote only once they have copied it.
func TestWhatIsWrittenOutlivesTheSession(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.signsIn(b.OwnerLink())
	b.Model.Enqueue(openai.Text("1. Add the flag."))
	b.Says("/plan add a --json flag")
	b.Sees("Plan p-1, version 1")
	w.finds("/approvals", "Add the flag.")
	w.presses("Edit the plan")
	w.writes("textarea[name=text]", "1. Add the flag, and test it.")
	other := open(t, b.Address())
	other.signsIn(b.OwnerLink())
	other.visit("/account")
	other.presses("Sign out")
	b.Model.Enqueue(openai.Text("Hello."))
	b.Says("hello")
	w.sees("You are signed out.")
	if w.number(`document.querySelector("textarea[name=text]").value === "1. Add the flag, and test it." ? 1 : 0`) == 0 {
		t.Error("what somebody wrote is gone")
	}
}

// Who goes through a list by keys is where they were after it has changed, and opens what
// they have chosen.
func TestKeysInAListThatChanges(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	for _, topic := range []string{"first", "second"} {
		b.Model.Enqueue(openai.Text("About the " + topic + "."))
		b.Says("the " + topic + " topic")
		b.Sees("About the " + topic + ".")
		b.Says("/new")
	}
	w.signsIn(b.OwnerLink())
	w.sees("the first topic", "Nothing is running.")
	press := func(key string) {
		w.number(`document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "` + key + `", bubbles: true})) ? 1 : 0`)
	}
	press("j")
	press("j")
	gate := emulator.NewGate()
	b.Model.Enqueue(openai.Reply(openai.Delta("One moment. "), openai.Gate(gate), openai.Delta("All of it.")))
	b.Says("the third topic")
	w.sees("the third topic", "Stop")
	gate.Open()
	w.sees("Nothing is running.", "the third topic")
	if w.number(`document.activeElement.textContent === "the first topic" ? 1 : 0`) == 0 {
		t.Error("what had the focus has lost it: who uses keys begins anew at the top of the page")
	}
	press("o")
	w.sees("About the first.")
}

// A change whose page could not be loaded is shown later: no further event tells of it.
func TestAPageThatCouldNotBeLoaded(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.signsIn(b.OwnerLink())
	w.number(`(() => {
		const right = window.fetch;
		window.fetch = () => { window.fetch = right; return Promise.reject(new TypeError("Failed to fetch")); };
		document.querySelector("h1").textContent = "As it was";
		live.refresh();
		return 1;
	})()`)
	w.waits("the page is as it is now", `document.querySelector("h1").textContent === "Overview"`)
}
