package journey_test

import (
	"strings"
	"testing"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
)

// button returns the callback data of a button under the newest message of the
// bot that has one.
func (w *world) button(chat int64, label string) (messageID int, data string) {
	w.t.Helper()
	err := w.tg.Wait(w.ctx(), func(l telegram.Ledger) bool {
		for _, m := range l.Chat(chat).FromBot() {
			for _, row := range m.Keyboard() {
				for _, b := range row {
					if b.Text == label {
						messageID, data = m.ID, b.Data
					}
				}
			}
		}
		return data != ""
	})
	if err != nil {
		w.t.Fatalf("there is no button %q", label)
	}
	return messageID, data
}

func TestPlanIsEditedApprovedAndRunAcrossRestarts(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.ai.Enqueue(openai.Text("1. Add the flag.\n2. Test it."))
		w.says(ann, "/plan add a --json flag")
		w.seesText(ann, "Add the flag", "Plan p-1, version 1")
		w.restart()

		w.says(ann, "looks good") // free text never approves
		w.seesText(ann, "echo: looks good")
		w.says(bob, "/approve p-1") // another chat, another person
		w.seesText(bob, "no plan p-1 here")
		w.says(ann, "/edit p-1 1. Add the flag. 2. Test it twice.")
		w.seesText(ann, "Test it twice", "Plan p-1, version 2")
		w.seesText(ann, "Plan p-1, version 1", "Replaced by a newer version")
		w.restart()

		w.says(ann, "/approve p-1 and mind the docs")
		w.seesText(ann, "Approved plan p-1, version 2")
		w.says(ann, "/approve p-1")
		w.seesText(ann, "is already approved")
		w.restart()

		w.ai.Enqueue(openai.Text("Both steps are done."))
		w.says(ann, "/execute")
		w.seesText(ann, "Both steps are done.")
		requests := w.ai.Requests()
		executed := requests[len(requests)-1]
		if text := executed.LastUserText(); !strings.Contains(text, "Test it twice") || strings.Contains(text, "looks good") {
			t.Errorf("what runs is %q", text)
		}
		if roles := strings.Join(executed.Roles(), " "); roles != "system user" && roles != "user" {
			t.Errorf("executing sees earlier messages: %s", roles)
		}
		w.says(ann, "/reject p-1")
		w.seesText(ann, "is already done")
	})
}

func TestPlanButtonsDecideOnceAndOnlyForTheRequester(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		const group = int64(-1001)
		w.tg.AddChat(telegram.Chat{ID: group, Type: telegram.Supergroup, Title: "Team"})
		w.start()
		a, b, e := w.tg.Person(ann).In(group), w.tg.Person(bob).In(group), w.tg.Person(eve).In(group)
		w.ai.Enqueue(openai.Text("1. First idea."))
		a.Says("/plan@acme_bot improve it")
		w.seesText(group, "First idea", "Plan p-1")
		message, run := w.button(group, "Approve and run")
		_, old := w.button(group, "Approve")

		e.Presses(message, run) // a stranger
		b.Presses(message, run) // somebody who may talk, but did not ask
		a.Says("/edit@acme_bot p-1 1. Second idea.")
		w.seesText(group, "Second idea", "version 2")
		a.Presses(message, old) // was bound to version 1
		w.restart()
		if n := w.ai.Stats().Received; n != 1 {
			t.Fatalf("the model was asked %d times before anybody approved", n)
		}

		message, run = w.button(group, "Approve and run")
		w.ai.Enqueue(openai.Text("Second idea is done."))
		a.Presses(message, run)
		a.Presses(message, run) // twice
		w.seesText(group, "Second idea is done.")
		w.seesText(group, "Second idea", "Run requested by")
		w.restart() // whatever the second press led to has ended
		if n := w.ai.Stats().Received; n != 2 {
			t.Errorf("the model was asked %d times, want 2", n)
		}
		for _, m := range w.tg.ChatView(group).FromBot() {
			if strings.Contains(m.Text, "Second idea") && len(m.Keyboard()) > 0 {
				t.Error("a settled plan still has buttons")
			}
		}
	})
}
