package outbox

import (
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// texter is a platform without files.
type texter struct {
	platform.Adapter
	caps platform.Capabilities
}

func (p texter) Capabilities() platform.Capabilities { return p.caps }

// filer is a platform with files.
type filer struct {
	platform.Filer
	caps platform.Capabilities
}

func (p filer) Capabilities() platform.Capabilities { return p.caps }

func TestWhatOfALongAnswerIsShown(t *testing.T) {
	t.Parallel()
	const file, gap = "✂ The middle is left out here, 2 messages. This file has the whole answer; `/full` posts it as text.", "✂ The middle is left out here, 2 messages. `/full` posts the whole answer."
	parts := []string{"begins", strings.Repeat("x", 99), "goes on", "ends"}
	double := func(text string) int { return 2 * len([]rune(text)) }
	exact := len([]rune(gap)) + 2 + len("goes on\n\nends")
	for name, tt := range map[string]struct {
		most, size int
		files      bool
		measure    func(string) int
		want       []string // behind the beginning
	}{
		"AsManyAsMayBe":     {most: 4, size: exact},
		"WithoutABound":     {size: exact},
		"WithAFile":         {most: 3, size: exact, files: true, want: []string{file, "goes on\n\nends"}},
		"InOneMessage":      {most: 3, size: exact, want: []string{gap + "\n\ngoes on\n\nends"}},
		"InTwo":             {most: 3, size: exact - 1, want: []string{gap, "goes on\n\nends"}},
		"MeasuredOtherwise": {most: 3, size: 2*exact - 1, measure: double, want: []string{gap, "goes on\n\nends"}},
	} {
		caps := platform.Capabilities{MaxMessages: tt.most, MaxText: tt.size, Measure: tt.measure}
		adapter := platform.Adapter(texter{caps: caps})
		if tt.files {
			adapter = filer{caps: caps}
		}
		o := New(Config{Adapters: map[messages.Platform]platform.Adapter{"p": adapter}})
		conv := sessions.Conversation{ID: "c", Key: messages.ConversationKey{Platform: "p", ID: "c"}}
		head, rest := o.abridge(conv, sessions.Entry{ID: "e"}, "all of it", parts)
		var got []string
		for _, d := range rest {
			got = append(got, d.Text)
			wanted := ""
			if d.Text == file {
				wanted = "answer-" + string(d.ID[len(d.ID)-8:]) + ".md"
			}
			if d.FileName != wanted || wanted != "" && string(d.File) != "all of it" || d.EventID != "e" || d.ConversationID != "c" {
				t.Errorf("%s: %+v", name, d)
			}
		}
		if !slices.Equal(got, tt.want) || (head == "begins") != (len(tt.want) > 0) {
			t.Errorf("%s: %q, then %q, want %q", name, head, got, tt.want)
		}
	}
}

// TestEndOfALongAnswer: a last part that says little has before it what was said last, up to
// half of a message, but no piece of a code block.
func TestEndOfALongAnswer(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{
		"one\n\ntwo\n\nthree":         "two\n\nthree\n\nend",
		"two\n\nthree-":               "three-\n\nend",
		"too long for half a message": "end",
		"```\nx\n```\n\nlast":         "end",
		"~~~\nx\n~~~\n\nlast":         "end",
	} {
		if got := ending(platform.Capabilities{MaxText: 30}, []string{"begin", before, "end"}); got != want {
			t.Errorf("behind %q it ends %q, want %q", before, got, want)
		}
	}
}

func TestButtonOfALongAnswer(t *testing.T) {
	t.Parallel()
	for _, has := range []bool{false, true} {
		o := New(Config{Adapters: map[messages.Platform]platform.Adapter{"p": texter{caps: platform.Capabilities{Buttons: has}}}})
		conv := sessions.Conversation{ID: "0199a7c3-0000-7000-8000-000000000001", Key: messages.ConversationKey{Platform: "p", ID: "c"}}
		if got := o.wholeButtons(conv, sessions.Entry{Seq: 7}); (len(got) == 1) != has || has && got[0].Label != "All as text" {
			t.Errorf("where there are buttons (%v): %+v", has, got)
		}
	}
}
