package orchestrator_test

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	ot "remote-agent/internal/orchestrator/orchestratortest"
)

// TestFilesOfAnAgent come behind its answer, also where it failed then, and are on record. Where
// the bot cannot send any, people are told so once.
func TestFilesOfAnAgent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		plain bool // the platform takes no files
		fails bool
	}{"Sent": {}, "Failed": {fails: true}, "NoFiles": {plain: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				agents(w)
				w.Chat.Plain = tt.plain
				w.Agent.On("draw", func(r *ot.Errands) (string, error) {
					r.Tell(assistant.TextDelta{Text: "Here they are."})
					r.Tell(assistant.FileMade{Name: "picture-1.png", Data: []byte("one")})
					r.Tell(assistant.FileMade{Name: "picture-2.png", Data: []byte("two")})
					if tt.fails {
						return "", fault.New(fault.Invalid, "It broke.")
					}
					return "Here they are.", nil
				})
				w.Start()
				w.Chat.Say("draw it")
				w.Pass(10 * time.Second)
				var got []string
				for _, p := range w.Chat.Posts(ot.Room) {
					if p.File != "" {
						got = append(got, p.File)
					} else if strings.Contains(p.Text, "Here they are.") {
						got = append(got, "answer")
					}
				}
				want := "answer picture-1.png picture-2.png"
				if tt.plain {
					want = "answer"
					w.Chat.Find("⚠ The answer comes with files, such as picture-1.png, that the bot cannot send here.")
				}
				if shown := strings.Join(got, " "); shown != want {
					t.Errorf("people see %q, want %q", shown, want)
				}
				if n := w.Value(`SELECT COUNT(*) FROM audit_log WHERE action = 'file.send'`); (n == "2") == tt.plain {
					t.Errorf("%s files are on record", n)
				}
			})
		})
	}
}
