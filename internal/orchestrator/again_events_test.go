package orchestrator_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/store"
)

// onRecord is what a repeated event may not change: all that is kept, without leases and times.
func onRecord(w *ot.World) (rows []string) {
	for _, query := range []string{
		`SELECT id, state, lane, data, attempts FROM inbound_events ORDER BY id`,
		`SELECT id, platform_conversation_id, ai_assistant_type, inbox_seq FROM remote_agent_conversations ORDER BY id`,
		`SELECT id, active FROM remote_agent_sessions ORDER BY id`,
		`SELECT id, state FROM deliveries ORDER BY id`,
		`SELECT seq, action FROM audit_log ORDER BY seq`,
		`SELECT id, conversation_id FROM agent_schedules ORDER BY id`,
	} {
		rows = append(rows, w.Rows(query)...)
	}
	return rows
}

// TestWhatAnotherProcessStored comes again, to one that does not remember it and where the
// world has gone on: it changes nothing.
func TestWhatAnotherProcessStored(t *testing.T) {
	t.Parallel()
	of := func(kind messages.InboundKind, change ...func(in *messages.Inbound)) func(w *ot.World) messages.Inbound {
		return func(w *ot.World) messages.Inbound {
			return w.Chat.Do(ot.With(func(in *messages.Inbound) {
				in.Kind = kind
				for _, also := range change {
					also(in)
				}
			}))
		}
	}
	says := func(text string, options ...ot.Option) func(w *ot.World) messages.Inbound {
		return func(w *ot.World) messages.Inbound { return w.Chat.Say(text, options...) }
	}
	album := ot.With(func(in *messages.Inbound) { in.Album = "a" })
	for name, tt := range map[string]struct {
		before func(w *ot.World)
		event  func(w *ot.World) messages.Inbound
		later  func(w *ot.World) // before it comes again
	}{
		"Message":  {nil, says("hello"), nil},
		"Command":  {nil, says("/new"), func(w *ot.World) { w.Chat.Say("hello") }},
		"Stranger": {nil, says("hello", ot.From(ot.Stranger)), nil},
		"Album":    {nil, says("hello", album), nil},
		"PartOfAnAlbum": {
			func(w *ot.World) {
				w.Model.On("dogs", ot.Hold("", ot.Say("Dogs bark.")))
				w.Chat.Say("dogs")
				w.Chat.Say("one", album)
			},
			says("two", album), nil,
		},
		"Closed":      {nil, of(messages.KindClosed), func(w *ot.World) { w.Chat.Say("hello") }},
		"ClosedTwice": {nil, of(messages.KindClosed, func(in *messages.Inbound) { in.Aliases = []messages.EventID{"gesture"} }), func(w *ot.World) { w.Chat.Say("hello") }},
		"Gone":        {nil, of(messages.KindGone), func(w *ot.World) { w.Chat.Say("/schedule on") }},
		"Moved": {
			nil, of(messages.KindMigrated, func(in *messages.Inbound) { in.MigratedTo = "elsewhere" }),
			func(w *ot.World) { w.Chat.Say("hello") },
		},
		"WhileHalted": {halt, says("hello"), nil},
		"TooMuch": {
			func(w *ot.World) { halt(w); w.Chat.Say("one"); w.Chat.Say("two") },
			says("three"), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.MaxWaiting = 2 }
				standing(w)
				if tt.before != nil {
					tt.before(w)
				}
				event := tt.event(w)
				w.Pass(5 * time.Second)
				if tt.later != nil {
					tt.later(w)
					w.Pass(5 * time.Second)
				}
				w.Model.ReleaseAll()
				w.Restart()
				w.Pass(5 * time.Second)
				want, posts := onRecord(w), w.Chat.Texts(ot.Room)
				w.Chat.Again(event)
				w.Pass(5 * time.Second)
				if d := cmp.Diff(want, onRecord(w)); d != "" {
					t.Errorf("it changed what is on record (-before +after):\n%s", d)
				}
				if got := w.Chat.Texts(ot.Room); !slices.Equal(got, posts) {
					t.Errorf("there stands %q, and before it %q", got, posts)
				}
			})
		})
	}
}
