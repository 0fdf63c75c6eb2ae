//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"remote-agent/internal/approval"
	"remote-agent/internal/doctor"
	"remote-agent/internal/messages"
	"remote-agent/internal/setup"
)

// formOf are all forms that can be sent, by the pattern of their path, each as it would be
// sent and do something.
func formsOf(s settled) map[string]url.Values {
	return map[string]url.Values{
		"/sign-in":               {"k": {"a-link"}, "to": {"/sessions"}},
		"/sign-in/proxy":         {"to": {"/sessions"}},
		"/decide":                {"on": {"approval"}, "number": {"1"}, "sha256": {s.question.SHA256}, "decision": {string(approval.Once)}, "text": {"x"}, "back": {"/approvals"}},
		"/sessions/{id}/stop":    {"back": {"/"}},
		"/sessions/{id}/retry":   {"back": {"/"}},
		"/sessions/{id}/undo":    {"sure": {"yes"}},
		"/sessions/{id}/fork":    {"messages": {"2"}, "place": {"thread"}},
		"/sessions/{id}/message": {"text": {"go on"}},
		"/sessions/{id}/delete":  {"sure": {"yes"}},
		"/account/end":           {"id": {"0198c2d1-7a3b-7c4d-8e5f-0123456789ab"}},
		"/sign-out":              {},
		"/theme":                 {"theme": {"dark"}, "back": {"/"}},
		"/chat":                  {"text": {"hello"}},
		"/chat/{id}":             {"text": {"hello"}},
		"/chat/{id}/press":       {"action": {"x"}, "message": {"y"}},
		"/chat/{id}/stop":        {},
		"/chat/{id}/delete":      {"sure": {"yes"}},
		"/audit/verify":          {},
		"/memory/change":         {"do": {"correct"}, "number": {"1"}, "text": {"I like tea."}, "sure": {"yes"}},
		"/people/request":        {"role": {"user"}, "number": {"1"}},
		"/people/change":         {"account": {"telegram/42"}, "to": {"user"}, "sure": {"yes"}},
		"/queue/turn":            {"id": {s.entry}, "do": {"stop"}},
		"/queue/delivery":        {"id": {"0198c2d1-7a3b-7c4d-8e5f-0123456789ab"}, "do": {"retry"}},
		"/queue/schedule":        {"conversation": {s.conversation.ID}},
		"/platforms/test":        {"name": {"telegram"}},
		"/agents/new":            {"text": {"name: x\nsystem_prompt: y\n"}, "from": {s.profile}},
		"/agents/{id}":           {"text": {"name: x\nsystem_prompt: y\n"}, "version": {"1"}},
		"/agents/{id}/delete":    {"sure": {"yes"}},
		"/settings/check":        {},
		"/setup/{step}":          {"way": {"server"}, "f:MODEL_URL": {"https://two.example"}, "f:MODEL_KEY": {"k"}, "d:MODEL_KEY": {""}, "do": {""}, "attempt": {""}},
		"/backups/create":        {},
		"/backups/verify":        {"name": {"x"}},
	}
}

// badValues are what a field may hold when somebody means ill.
var badValues = map[string]string{
	"nothing": "", "invalid UTF-8": "a\xff\xfeb", "NUL": "a\x00b", "NUL alone": "\x00", "bidi": "a\u202Etxt\u2066.exe", "controls": "a\x1b[2J\r\nX: y", "a number": "-99999999999999999999",
	"a path": "../../../../etc/passwd", "long": strings.Repeat("ü", 100<<10), "2 MB": strings.Repeat("x", 2<<20),
}

var postRoute = regexp.MustCompile(`"POST (/[^"]*)"`)

// Every field of every form takes whatever comes: a page that says what is wrong, or a
// refusal, and never a failure. Nothing that the engine or a platform could not take is
// handed on.
func TestEveryFieldOfEveryFormTakesWhatComes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		c := newConfiguration()
		w.config.Setup = func() (setup.Service, error) { return c, nil }
		w.check = func(context.Context, string) doctor.Report { return doctor.Report{} }
		w.config.About.RemoveChat = func(context.Context, string, string) error { return nil }
		w.config.About.RemoveSession = func(context.Context, string, string) error { return nil }
		w.talks()
		forms := formsOf(s)
		var routes []string
		files, _ := filepath.Glob("*.go")
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range postRoute.FindAllStringSubmatch(string(text), -1) {
				routes = append(routes, m[1])
			}
		}
		slices.Sort(routes)
		if got := slices.Sorted(maps.Keys(forms)); !slices.Equal(got, routes) {
			t.Fatalf("the forms are %q, want %q", got, routes)
		}
		b := w.as(ann)
		account := b.get("/account")
		chat, _, _ := strings.Cut(strings.TrimPrefix(b.post("/chat", url.Values{"text": {"hello"}}).Header().Get("Location"), "/chat/"), "#")
		for _, route := range routes {
			id := map[bool]string{true: chat, false: s.session.ID}[strings.HasPrefix(route, "/chat")]
			if strings.HasPrefix(route, "/agents") {
				id = s.profile
			}
			at := strings.NewReplacer("{id}", id, "{step}", "model").Replace(route)
			for _, field := range append(slices.Sorted(maps.Keys(forms[route])), "token", "nonce") {
				for name, value := range badValues {
					if len(value) > 1<<20 && w.Dialect() != "sqlite" {
						continue // it is refused before any database comes into it
					}
					w.takes(t, b, &account, at, field, name, value, forms[route])
				}
			}
			for name, value := range badValues {
				if strings.Contains(route, "{") && len(value) < 1000 {
					at := strings.NewReplacer("{id}", url.PathEscape(value), "{step}", url.PathEscape(value)).Replace(route)
					w.takes(t, b, &account, at, "", name, "", forms[route])
				}
			}
		}
		for _, in := range w.took {
			if !utf8.ValidString(in.Text) || strings.ContainsRune(in.Text, 0) || len(in.Text) > 1<<20 || in.Kind != messages.KindMessage && in.Kind != messages.KindAction {
				t.Errorf("the engine was given %.100q", in.Text)
			}
		}
		if log := w.log.String(); strings.Contains(log, "a page failed") {
			t.Errorf("the log says %s", log)
		}
	})
}

// takes sends a form with a value in one of its fields. account is a page with the token of
// the browser's session.
func (w *world) takes(t *testing.T, b *browser, account *string, at, field, name, value string, usual url.Values) {
	t.Helper()
	w.later(100 * time.Millisecond) // or it would be too many at once
	form := url.Values{"token": {tokenField.FindStringSubmatch(*account)[1]}, "nonce": {strings.ReplaceAll(uuid.NewString(), "-", "")}}
	maps.Copy(form, usual)
	if field != "" {
		form.Set(field, value)
	}
	r := b.send("POST", at, form)
	page := r.Body.String()
	if at == "/sign-out" && r.Code == http.StatusSeeOther {
		*b = *w.as(ann)
		*account = b.get("/account")
	}
	if r.Code >= 500 && r.Code != http.StatusServiceUnavailable || r.Code < 200 {
		t.Errorf("POST %s with %s in %q: %d\n%.2000s", at, name, field, r.Code, page)
	}
	if strings.ContainsAny(page, "\u202E\u2066\x1b\x00") || !utf8.ValidString(page) {
		t.Errorf("POST %s with %s in %q: the page has it as it came", at, name, field)
	}
	if to := r.Header().Get("Location"); strings.ContainsAny(to, "\r\n\\") || to != "" && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//")) {
		t.Errorf("POST %s with %s in %q leads to %q", at, name, field, to)
	}
}
