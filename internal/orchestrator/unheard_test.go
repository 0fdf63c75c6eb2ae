package orchestrator_test

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/store"
)

const notAllowed = "The bot may not write in that chat."

// mute has a room take no messages of the bot.
func mute(w *ot.World, room string, kind fault.Kind) {
	w.Chat.ReactBy(func(a ot.Asked) ot.Reaction {
		if a.Room == room && a.What != "edit" && a.What != "delete" {
			return ot.Reaction{Err: fault.New(kind, notAllowed)}
		}
		return ot.Reaction{}
	})
}

// TestWhoAskedIsToldWhereTheyCanReadIt: in a group in which the bot may not write, or not
// any more, they would wait for an answer that nobody sees.
func TestWhoAskedIsToldWhereTheyCanReadIt(t *testing.T) {
	t.Parallel()
	const text = "⚠ The bot could not answer you where you wrote `what about 'dogs'?`. " + notAllowed
	unsupported := fault.New(fault.Unsupported, "not here")
	for name, tt := range map[string]struct {
		before  func(w *ot.World)
		kind    fault.Kind
		whisper error
		ann     string // in her own chat
		note    string
		olga    string // the owner, in hers
	}{
		"InTheirOwnChat": {whisper: unsupported, before: func(w *ot.World) { w.Chat.Say("hello", private(ot.Ann)...) }, kind: fault.Forbidden, ann: text},
		"Gone":           {whisper: unsupported, before: func(w *ot.World) { w.Chat.Say("hello", private(ot.Ann)...) }, kind: fault.Gone, ann: text},
		"Whispered":      {kind: fault.Forbidden, note: "ann: " + text},
		"Owners": {
			before:  func(w *ot.World) { w.Chat.Say("hello", private(ot.Olga)...) },
			whisper: unsupported, kind: fault.Forbidden,
			olga: "⚠ The bot could not answer Ann in `chat/team`. " + notAllowed,
		},
		"Nobody": {whisper: unsupported, kind: fault.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.NoNotes = tt.whisper
				w.Start()
				if tt.before != nil {
					tt.before(w)
					w.Pass(20 * time.Second)
				}
				mute(w, "team", tt.kind)
				for range 3 {
					w.Chat.Say("what about `dogs`?", ot.In("team"))
					w.Pass(20 * time.Second)
				}
				w.Pass(time.Minute) // until somebody looks for work
				for room, want := range map[string]string{"chat-ann": tt.ann, "chat-olga": tt.olga} {
					told := 0
					for _, got := range w.Chat.Texts(room) {
						if strings.Contains(got, "could not answer") {
							told++
							if want == "" || !strings.Contains(got, want) {
								t.Errorf("in %s stands %q, want %q", room, got, want)
							}
						}
					}
					if (want != "") != (told == 1) {
						t.Errorf("in %s it is told %d times: %q", room, told, w.Chat.Texts(room))
					}
				}
				if got := strings.Join(w.Chat.Notes(), "\n"); got != tt.note {
					t.Errorf("Ann alone read %q, want %q", got, tt.note)
				}
			})
		})
	}
}

// TestNobodyIsToldOfTheirOwnChat: whoever blocked the bot there would not read it.
func TestNobodyIsToldOfTheirOwnChat(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		w.Chat.Say("hello", private(ot.Olga)...)
		w.Pass(20 * time.Second)
		mute(w, "chat-ann", fault.Gone)
		w.Chat.Say("hello", private(ot.Ann)...)
		w.Pass(20 * time.Second)
		if got := len(w.Chat.Texts("chat-olga")); got != 1 || len(w.Chat.Notes()) > 0 {
			t.Errorf("the owner reads %q, and others %q", w.Chat.Texts("chat-olga"), w.Chat.Notes())
		}
	})
}

// TestOwnersHearOfWhatWasNotBegun: a platform knows before a turn that nobody would see its
// answer, as in a locked issue. Nothing is spent on it, and owners are told.
func TestOwnersHearOfWhatWasNotBegun(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.NoNotes = fault.New(fault.Unsupported, "not here")
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Worktrees = &located{w: w} }
		w.Chat.Locates = func(in messages.Inbound) (messages.Repository, error) {
			return *in.Repository, fault.New(fault.Gone, "It is locked.")
		}
		w.Start()
		w.Chat.Say("hello", private(ot.Olga)...)
		w.Pass(20 * time.Second)
		mute(w, "team", fault.Gone)
		asked := len(w.Model.Asked())
		w.Chat.Say("what about dogs?", ot.In("team"), about)
		w.Pass(time.Minute)
		if n := len(w.Model.Asked()) - asked; n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
		if got := strings.Join(w.Chat.Texts("chat-olga"), "\n"); !strings.Contains(got, "could not answer Ann in `chat/team`. "+notAllowed) {
			t.Errorf("the owner reads %q", got)
		}
	})
}
