package telegram

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-telegram/bot/models"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// answered records what is answered and when.
type answered struct {
	mu    sync.Mutex // guards what follows
	start time.Time
	ids   []string
	after []time.Duration
}

func (a *answered) answer(_ context.Context, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids = append(a.ids, id)
	a.after = append(a.after, time.Since(a.start))
}

func TestPressesAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPresses()
		got := &answered{start: time.Now()}
		stop := p.start(t.Context(), got.answer)
		p.expect([]string{"whispered", "whispered early", "silent", "not stored"})
		if !p.claim("whispered early") {
			t.Error("a press cannot be answered before its event is stored")
		}
		p.forget([]string{"not stored"})
		for range 2 { // delivered twice
			p.schedule([]string{"whispered", "whispered early", "silent", "not stored", "never expected"})
		}
		time.Sleep(answerDelay - time.Millisecond)
		if !p.claim("whispered") || p.claim("whispered") {
			t.Error("a press must be claimed exactly once")
		}
		time.Sleep(time.Hour)
		stop()
		if !slices.Equal(got.ids, []string{"silent"}) || got.after[0] != answerDelay {
			t.Errorf("answered %v after %v", got.ids, got.after)
		}
	})
}

func TestPressesThatDoNotFitAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPresses()
		got := &answered{start: time.Now()}
		stop := p.start(t.Context(), got.answer)
		defer stop()
		var ids []string
		for i := range maxPresses + 3 {
			ids = append(ids, strconv.Itoa(i))
		}
		if n := p.expect(ids); n != 3 {
			t.Errorf("%d dropped", n)
		}
		p.schedule(ids)
		time.Sleep(answerDelay + time.Second)
		synctest.Wait()
		if len(got.ids) != maxPresses || len(p.open) != 0 {
			t.Errorf("%d answered, %d left", len(got.ids), len(p.open))
		}
		if n := p.expect([]string{"later"}); n != 0 {
			t.Error("there is no room after all were answered")
		}
	})
}

// Claimed presses stay in the queue until they are due; when it is full the
// presses that do not fit must not keep their room.
func TestPressesKeepNoRoomWithoutAPlaceInTheQueue(t *testing.T) {
	t.Parallel()
	p := newPresses()
	for i := range 10 * maxPresses {
		id := []string{strconv.Itoa(i)}
		p.expect(id)
		p.schedule(id)
		if i < 2*maxPresses {
			p.claim(id[0])
		}
	}
	if len(p.open) != 0 {
		t.Errorf("%d presses wait for nobody", len(p.open))
	}
}

func TestPressesStopWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPresses()
		got := &answered{start: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		stop := p.start(ctx, got.answer)
		p.expect([]string{"1", "2"})
		p.schedule([]string{"1", "2"})
		time.Sleep(time.Second)
		cancel()
		stop()
		if took := time.Since(got.start); took != time.Second || len(got.ids) != 0 {
			t.Errorf("stopped after %v, answered %v", took, got.ids)
		}
	})
}

func TestNote(t *testing.T) {
	t.Parallel()
	a := newTestAdapter(t)
	for in, want := range map[string]string{
		"":                        "",
		" \n":                     "",
		"This is **done**.":       "This is done.",
		strings.Repeat("a", 200):  strings.Repeat("a", 200),
		strings.Repeat("a", 201):  strings.Repeat("a", 199) + "…",
		strings.Repeat("😀", 100):  strings.Repeat("😀", 100),
		strings.Repeat("😀", 101):  strings.Repeat("😀", 99) + "…",
		strings.Repeat("x", 9999): strings.Repeat("x", 199) + "…",
		"a\xff":                   "a\uFFFD",
	} {
		got := a.note(in)
		if got != want {
			t.Errorf("note(%.20q) is %q, want %q", in, got, want)
		}
	}
}

func TestKeyboard(t *testing.T) {
	t.Parallel()
	button := func(label string) messages.Button { return messages.Button{ID: "id", Label: label} }
	tests := map[string]struct {
		in   []messages.Button
		want string // rows of labels
	}{
		"None":      {nil, ""},
		"Three":     {[]messages.Button{button("Yes"), button("No"), button("Later")}, "Yes,No,Later"},
		"Four":      {[]messages.Button{button("a"), button("b"), button("c"), button("d")}, "a,b,c|d"},
		"Long":      {[]messages.Button{button("Approve this plan"), button("Approve all of them"), button("No")}, "Approve this plan,Approve all of them|No"},
		"VeryLong":  {[]messages.Button{button("ok"), button(strings.Repeat("ä", 65))}, "ok|" + strings.Repeat("ä", 63) + "…"},
		"NoLabel":   {[]messages.Button{button(" \n")}, "…"},
		"OneLine":   {[]messages.Button{button("a\nb\u202e")}, "a b"},
		"InvalidU8": {[]messages.Button{button("a\xff")}, "a\uFFFD"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			markup, err := keyboard(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if got := labels(markup); got != tt.want {
				t.Errorf("rows %q, want %q", got, tt.want)
			}
		})
	}
}

// labels writes a keyboard as "a,b|c".
func labels(markup models.ReplyMarkup) string {
	k, ok := markup.(*models.InlineKeyboardMarkup)
	if !ok {
		return ""
	}
	var rows []string
	for _, row := range k.InlineKeyboard {
		var texts []string
		for _, b := range row {
			texts = append(texts, b.Text)
		}
		rows = append(rows, strings.Join(texts, ","))
	}
	return strings.Join(rows, "|")
}

func TestKeyboardRefuses(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", " ", "ä", "a b", "a\x00", strings.Repeat("x", 65)} {
		if _, err := keyboard([]messages.Button{{ID: id, Label: "x"}}); !fault.Is(err, fault.Invalid) {
			t.Errorf("id %q: %v", id, err)
		}
	}
	if _, err := keyboard(slices.Repeat([]messages.Button{{ID: "x", Label: "x"}}, maxButtons+1)); !fault.Is(err, fault.Invalid) {
		t.Errorf("too many: %v", err)
	}
}

func FuzzKeyboard(f *testing.F) {
	f.Add("Approve", "Reject", "approve-1", 2)
	f.Add("", strings.Repeat("😀", 99), "x", 9)
	f.Add("\xff\u202e\x00", "a\u200db", strings.Repeat("x", 64), 100)
	f.Fuzz(func(t *testing.T, one, two, id string, n int) {
		var in []messages.Button
		for i := range max(0, min(n, 2*maxButtons)) {
			in = append(in, messages.Button{ID: id, Label: []string{one, two}[i%2]})
		}
		markup, err := keyboard(in)
		if err != nil || markup == nil {
			return
		}
		total := 0
		for _, row := range markup.(*models.InlineKeyboardMarkup).InlineKeyboard {
			if len(row) < 1 || len(row) > rowButtons {
				t.Fatalf("a row of %d", len(row))
			}
			for _, b := range row {
				total++
				if b.Text == "" || !utf8.ValidString(b.Text) || utf8.RuneCountInString(b.Text) > maxLabel || len(b.CallbackData) < 1 || len(b.CallbackData) > 64 {
					t.Fatalf("button %+v", b)
				}
			}
		}
		if total != len(in) {
			t.Fatalf("%d buttons of %d", total, len(in))
		}
	})
}

func FuzzNote(f *testing.F) {
	f.Add("plain")
	f.Add("**b** `c`\n\n```\nx\n```")
	f.Add(strings.Repeat("😀a", 150))
	f.Add("\xff\x00<!-- -->")
	a := newTestAdapter(f)
	f.Fuzz(func(t *testing.T, text string) {
		note := a.note(text)
		if n := len(utf16.Encode([]rune(note))); n > maxNote || !utf8.ValidString(note) {
			t.Fatalf("%d units: %q", n, note)
		}
	})
}
