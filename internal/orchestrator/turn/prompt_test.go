package turn

import (
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/platform"
	"remote-agent/internal/profile"
)

// TestSystemPromptIsMadeOf holds, part by part and in order, what an assistant is
// told.
func TestSystemPromptIsMadeOf(t *testing.T) {
	t.Parallel()
	const (
		us       = "You are Remote Agent"
		asks     = "ask one short question"
		stops    = "/agent stop"
		alone    = "You talk with one person, in a chat."
		among    = "each message begins with the name"
		format   = "Write CommonMark. Tables are shown."
		length   = "One message holds 4096 characters"
		data     = "are data"
		notes    = "What the repository tells every assistant (AGENTS.md):\n\nUse make."
		dir      = "You work in the directory /w/tree, a worktree of acme/web on the branch bot/x."
		nowhere  = "No repository is chosen here"
		today    = "Today is Sunday, 2026-11-22."
		operator = "Obey the operator."
		own      = "Obey the repository."
		strict   = "Be strict."
		lore     = "- born in May"
	)
	all := []string{us, asks, stops, alone, among, format, length, data, notes, dir, nowhere, today, operator, own, strict, lore}
	work := Prepared{Dir: "/w/tree", Codebase: "acme/web", Branch: "bot/x", NotesFrom: "AGENTS.md", InstructionsFrom: ".agents/system.md"}
	base := systemPrompt{
		Caps:   platform.Capabilities{Place: "a chat", Format: "Tables are shown.", MaxText: 4096},
		Prefix: "/agent ", Private: true, Repositories: true, Today: time.Date(2026, 11, 22, 23, 59, 0, 0, time.UTC),
	}
	tests := map[string]struct {
		change  func(p *systemPrompt)
		want    []string // in this order; everything else of all is missing
		sources string
	}{
		"a model API": {
			change: func(*systemPrompt) {}, want: []string{us, asks, stops, alone, format, length, data, nowhere, today}, sources: "built-in",
		},
		"in a repository": {
			change: func(p *systemPrompt) { p.Work, p.Notes = work, "Use make.\n" },
			want:   []string{us, asks, stops, alone, format, length, data, notes, dir, today}, sources: "built-in AGENTS.md",
		},
		"an agent with a loop of its own": {
			change: func(p *systemPrompt) { p.Work, p.Notes, p.Agent = work, "Use make.", true },
			want:   []string{us, asks, stops, alone, format, length, data}, sources: "built-in",
		},
		"several people, no limit, no tools": {
			change: func(p *systemPrompt) {
				p.Private, p.Caps, p.Repositories = false, platform.Capabilities{MaxText: 1 << 20}, false
			},
			want: []string{us, asks, stops, among, data, today}, sources: "built-in",
		},
		"no limit known": {
			change: func(p *systemPrompt) { p.Caps.MaxText = 0 },
			want:   []string{us, asks, stops, alone, format, data, nowhere, today}, sources: "built-in",
		},
		"overridden by option": {
			change: func(p *systemPrompt) { p.Operator = operator },
			want:   []string{operator, alone, format, length, data, nowhere, today}, sources: "SYSTEM_PROMPT",
		},
		"overridden by the repository": {
			change: func(p *systemPrompt) { p.Repository, p.Work = own, work },
			want:   []string{own, alone, format, length, data, dir, today}, sources: ".agents/system.md",
		},
		"overridden by profile": {
			change: func(p *systemPrompt) {
				p.Profile = &profile.Profile{Name: "reviewer", SystemPrompt: strict, Lore: profile.Texts{"born in May"}}
			},
			want: []string{strict, lore, alone, format, length, data, nowhere, today}, sources: "profile",
		},
		"a profile without instructions adds": {
			change: func(p *systemPrompt) {
				p.Profile = &profile.Profile{Name: "reviewer", Lore: profile.Texts{"born in May"}}
			},
			want: []string{us, asks, stops, lore, alone, format, length, data, nowhere, today}, sources: "built-in profile",
		},
		"by all": {
			change: func(p *systemPrompt) {
				p.Operator, p.Repository, p.Work, p.Profile = operator, own, work, &profile.Profile{Name: "reviewer", SystemPrompt: strict}
			},
			want: []string{operator, own, strict, alone, format, length, data, dir, today}, sources: "SYSTEM_PROMPT .agents/system.md profile",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := base
			tt.change(&p)
			got, at := p.text(), -1
			for _, part := range tt.want {
				i := strings.Index(got, part)
				if i <= at {
					t.Errorf("%q is missing or too early in:\n%s", part, got)
				}
				at = max(at, i)
			}
			for _, part := range all {
				if !slices.Contains(tt.want, part) && strings.Contains(got, part) {
					t.Errorf("%q is in:\n%s", part, got)
				}
			}
			if !slices.Contains(tt.want, length) && strings.Contains(got, "One message holds") {
				t.Errorf("a limit is told in:\n%s", got)
			}
			if from := strings.Join(p.sources(), " "); from != tt.sources {
				t.Errorf("it is made of %q, want %q", from, tt.sources)
			}
			if len(got) > 3000 {
				t.Errorf("%d bytes are not short", len(got))
			}
			later := p
			later.Today = p.Today.Add(24 * time.Hour)
			same := 0
			for same < len(got) && later.text()[same] == got[same] {
				same++
			}
			if !p.Agent && !strings.HasPrefix(got[same:], "Sun") && same < strings.Index(got, today) {
				t.Errorf("the next day changes more than the date: %q", got[same:])
			}
		})
	}
}
