//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"remote-agent/internal/memory"
	"remote-agent/internal/pages"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
)

// remembering keeps memories in the database of a world, as package recollect does.
type remembering struct{ *world }

func (m *remembering) Remember(ctx context.Context, by signin.Account, once, text string) (out memory.Outcome, err error) {
	if text, err = memory.CleanText(text); err != nil {
		return out, err
	}
	err = m.InTx(ctx, func(tx *store.Tx) (err error) {
		out, err = tx.Memories().UpsertFact(ctx, memory.Fact{Scope: memory.Scope{Person: by.String()}, Text: text, Origin: memory.ByPerson, RunID: once, Key: once, Now: m.now})
		return err
	})
	return out, err
}

func (m *remembering) Correct(ctx context.Context, by signin.Account, once string, number int64, text string) error {
	text, err := memory.CleanText(text)
	if err != nil {
		return err
	}
	return m.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Memories().CorrectFact(ctx, number, memory.Fact{Scope: memory.Scope{Person: by.String()}, Text: text, Origin: memory.ByPerson, RunID: once, Key: once, Now: m.now})
		return err
	})
}

func (m *remembering) Forget(ctx context.Context, person string, number int64) error {
	return m.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Memories().ForgetMemory(ctx, person, number)
		return err
	})
}

func (*remembering) Embed(context.Context, string) memory.Embedding { return memory.Embedding{} }

func TestMemoryIsEverybodysOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		owner, b := w.as(ann), w.as(bob)
		wants(t, b.get("/memory"), "Nothing is remembered about you yet", "About telegram/42 and nobody else", `aria-current="page">Memory`)
		do := func(form string) string {
			t.Helper()
			values, err := url.ParseQuery(form)
			if err != nil {
				t.Fatal(err)
			}
			return b.follow(b.post("/memory/change", values))
		}
		twice := url.Values{"do": {"remember"}, "text": {"I deploy on Fridays " + strings.ReplaceAll(evilName, "\n", " ")}}
		wants(t, b.follow(b.post("/memory/change", twice)), "Saved as memory 1.", "I deploy on Fridays", "1 memory")
		wants(t, b.follow(b.post("/memory/change", twice)), "1 memory")
		clean(t, "/memory", b.get("/memory"))
		do("do=remember&text=My+editor+is+vim")
		wants(t, do("do=edit&number=2&text=My+editor+is+emacs"), "Updated memory 2.", "emacs", "before: My editor is vim")
		found := b.get("/memory?q=editor")
		if wants(t, found, "emacs"); strings.Contains(found, "Fridays") {
			t.Error("a search finds what it should not")
		}
		wants(t, b.get("/memory?q=nothingofthekind"), "No memories match.")
		for _, who := range []*browser{owner, w.as(cat)} {
			page := who.get("/memory")
			if strings.Contains(page, "Fridays") || !strings.Contains(page, "Nothing is remembered about you yet") {
				t.Error("somebody else reads a memory")
			}
			if r := who.post("/memory/change", url.Values{"do": {"forget"}, "number": {"1"}, "sure": {"yes"}}); r.Code != http.StatusNotFound {
				t.Errorf("forgetting a memory of somebody else: %d", r.Code)
			}
		}
		for _, form := range []string{"do=forget&number=1", "do=forget-all", "do=edit&number=0&text=x", "do=forget&sure=yes", "do=burn", "do=edit&number=1&text=", "do=remember&text=+"} {
			values, _ := url.ParseQuery(form)
			if r := b.post("/memory/change", values); r.Code != http.StatusBadRequest {
				t.Errorf("%s: %d", form, r.Code)
			}
		}
		wants(t, do("do=off"), "Memory is off for you.", "off: none of this is used", "2 memories")
		do("do=on")
		wants(t, do("do=forget&number=1&sure=yes"), "Deleted memory 1.", "1 memory")
		wants(t, do("do=forget-all&sure=yes"), "Deleted 1 memory.", "Nothing is remembered about you yet")
		w.do(func(ctx context.Context, tx *store.Tx) error {
			rows, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Action: "memory", Limit: 10})
			if len(rows) != 3 || rows[0].Action != "memory.off" || rows[2].Action != "memory.forget_all" || rows[2].Actor != "telegram/42" {
				t.Errorf("the audit log: %+v", rows)
			}
			return err
		})
	})
}

// A memory with a secret has no form: that would show it, or save the mask in its place.
func TestASecretInAMemoryIsNotInItsForm(t *testing.T) {
	t.Parallel()
	eachWith(t, func(c *pages.Config) {
		c.Redact = func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }
	}, func(t *testing.T, w *world) {
		b := w.as(bob)
		for _, text := range []string{"I log in with hunter2", "My editor is vim"} {
			b.follow(b.post("/memory/change", url.Values{"do": {"remember"}, "text": {text}}))
		}
		page := b.get("/memory")
		wants(t, page, "I log in with [redacted]", "New text of memory 2", "you can edit it only in the chat", "Yes, forget memory 1")
		if strings.Contains(page, "hunter2") || strings.Contains(page, "New text of memory 1") {
			t.Error("the form of a memory has its secret")
		}
	})
}

// The form of a memory has all of it, or saving would forget the end; and a secret is
// looked for in all of it, or the beginning of one would be shown.
func TestALongMemoryIsShownWhole(t *testing.T) {
	t.Parallel()
	eachWith(t, func(c *pages.Config) {
		c.Redact = func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }
	}, func(t *testing.T, w *world) {
		for _, text := range []string{strings.Repeat("語", memory.MaxText-3) + "。终。", strings.Repeat("語", 1364) + " hunter2"} {
			if _, err := (&remembering{w}).Remember(t.Context(), bob, uuid.NewString(), text); err != nil {
				t.Fatal(err)
			}
		}
		page := w.as(bob).get("/memory")
		if got := strings.Count(page, "。终。"); got != 2 {
			t.Errorf("the end of a memory is there %d times, want it in the list and in the form", got)
		}
		_, list, _ := strings.Cut(page, "語")
		list, _, _ = strings.Cut(list, "</span>")
		if strings.Contains(list, "hunt") || !strings.Contains(list, "[redacted]") {
			t.Errorf("a secret at the end: %q", list[max(0, len(list)-40):])
		}
	})
}

func TestMemoriesComeInWindows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		m := &remembering{w}
		for i := range 120 {
			if _, err := m.Remember(t.Context(), bob, uuid.NewString(), fmt.Sprintf("thing%d%s", i, strings.Repeat("<", 1900))); err != nil {
				t.Fatal(err)
			}
		}
		b, path, seen := w.as(bob), "/memory", 0
		for path != "" {
			page := b.get(path)
			if len(page) > 300<<10 {
				t.Errorf("GET %s has %d bytes", path, len(page))
			}
			n := strings.Count(page, `value="edit"`)
			if n == 0 {
				t.Fatalf("GET %s is empty", path)
			}
			seen += n
			_, rest, more := strings.Cut(page, `href="/memory?before=`)
			path = ""
			if more {
				rest, _, _ = strings.Cut(rest, `"`)
				path = "/memory?before=" + rest
			}
		}
		if seen != 120 {
			t.Errorf("%d memories on all pages", seen)
		}
	})
}
