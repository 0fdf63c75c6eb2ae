//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/pages"
	"remote-agent/internal/setup"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// configuration is a setup.Service over two options and a service that makes a key.
type configuration struct {
	values  map[string]string
	pinned  map[string]bool
	verdict setup.Verdict
	refused error // of Keep
	did     []string
	made    int

	exchanging func() // while the service makes its key; may be nil
}

func newConfiguration() *configuration {
	return &configuration{values: map[string]string{"MODEL_URL": "https://one.example", "MODEL_KEY": "sk-old"}, pinned: map[string]bool{}}
}

func (c *configuration) Steps(context.Context) []setup.Step {
	return []setup.Step{
		{Name: "model", Title: "Model <who> answers", Ways: []setup.Way{{
			Name: "server", Title: "a server", Guide: []string{"Start it.", "Look at <b>it</b>."}, Link: "https://docs.example/a", Opens: "It answers.",
			Fields: []setup.Field{
				{Name: "MODEL_URL", Label: "Address"}, {Name: "MODEL_KEY", Label: "Key", Secret: true, Optional: true, For: "MODEL_URL"},
				{Name: "MODEL_NAME", Label: "Name", Default: "small"},
			},
			Proof: setup.Proof{Areas: []string{"models"}},
		}, {Name: "none", Title: "no model", Set: map[string]string{"MODEL_URL": ""}}}},
		{Name: "repository", Title: "Repository", Ways: []setup.Way{{
			Name: "add", Title: "clone one", Fields: []setup.Field{{Name: "repository", Label: "Where"}}, Opens: "Work on it.",
			Act: func(_ context.Context, values map[string]string) (string, error) {
				if values["repository"] == "bad" {
					return "", fault.New(fault.Invalid, "That is no repository.")
				}
				c.did = append(c.did, "act "+values["repository"])
				return "Cloned.\n", nil
			},
		}}},
		{Name: "forge", Title: "Forge", Ways: []setup.Way{{
			Name: "app", Title: "an app", Proof: setup.Proof{Areas: []string{"platforms"}},
			Obtain: &setup.Obtain{
				Form: func(_ map[string]string, back, state string) (setup.Form, error) {
					return setup.Form{Action: "https://forge.example/new", Fields: map[string]string{"manifest": `{"back":"` + back + `"}`, "state": state}}, nil
				},
				Exchange: func(ctx context.Context, q url.Values) (map[string]string, string, error) {
					if q.Get("code") != "good" {
						return nil, "", fault.New(fault.Invalid, "The forge knows no such code.")
					}
					c.made++
					if c.exchanging != nil {
						c.exchanging()
					}
					if ctx.Err() != nil {
						return nil, "", ctx.Err()
					}
					return map[string]string{"FORGE_KEY": "made"}, "https://forge.example/install", nil
				},
			},
		}}},
	}
}

func (c *configuration) State(_ context.Context, s setup.Step) setup.State {
	return setup.State{On: s.Name == "model", Line: "as it is", Values: []setup.Value{c.Value("MODEL_URL"), {Name: "MODEL_KEY", Text: "set", Set: c.values["MODEL_KEY"] != "", Origin: ".env"}}}
}

func (c *configuration) Value(name string) setup.Value {
	text, set := c.values[name]
	return setup.Value{Name: name, Text: text, Set: set, Origin: "environment", Pinned: c.pinned[name]}
}

func (c *configuration) Blocked(w setup.Way) string {
	if w.Name == "none" {
		return "MODEL_URL is set by the environment."
	}
	return ""
}

func (c *configuration) CheckValue(name, value string) string {
	if name == "MODEL_URL" && !strings.HasPrefix(value, "https://") {
		return "MODEL_URL is no address."
	}
	return ""
}

func (c *configuration) Try(_ context.Context, s setup.Step, w setup.Way, values map[string]string) setup.Outcome {
	c.did = append(c.did, "try")
	return setup.Outcome{Verdict: c.verdict, Findings: []doctor.Finding{{Area: "models", Check: "account", Status: doctor.Warn, Detail: "found <i>this</i>"}}}
}

func (c *configuration) Keep(_ context.Context, _ setup.Step, _ setup.Way, values map[string]string) ([]string, error) {
	if c.refused != nil {
		return nil, c.refused
	}
	maps.Copy(c.values, values)
	c.did = append(c.did, "keep")
	return []string{"Saved."}, nil
}

func (c *configuration) Prove(context.Context, setup.Way) setup.Outcome {
	c.did = append(c.did, "prove")
	return setup.Outcome{}
}

func (c *configuration) PutAside(setup.Way, map[string]string) (string, error) {
	c.did = append(c.did, "put aside")
	return ".env.refused", nil
}

func (c *configuration) done() string {
	defer func() { c.did = nil }()
	return strings.Join(c.did, ", ")
}

func eachSetup(t *testing.T, test func(t *testing.T, w *world, c *configuration)) {
	t.Helper()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		c := newConfiguration()
		test(t, newWorld(t, open(t), func(config *pages.Config) {
			config.Setup = func() (setup.Service, error) { return c, nil }
		}), c)
	})
}

// submits sends a form and returns the page that follows.
func (b *browser) submits(target string, form url.Values) string {
	b.t.Helper()
	return b.follow(b.post(target, form))
}

var attemptID = regexp.MustCompile(`name="attempt" value="([A-Z0-9]+)"`)

func TestSetUpAModel(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, w *world, c *configuration) {
		b := w.as(ann)
		wants(t, b.get("/setup"), "Model &lt;who&gt; answers", `href="/setup/model"`, "as it is")
		page := b.get("/setup/model")
		wants(t, page, "Look at &lt;b&gt;it&lt;/b&gt;.", "Open docs.example", "Leave it empty for small.", `type="password" name="f:MODEL_KEY"`, `name="drop:MODEL_KEY"`)
		if strings.Contains(page, "sk-old") {
			t.Error("the page has the key")
		}
		// What is wrong by itself goes nowhere, and is there to be mended.
		r := b.submits("/setup/model", url.Values{"way": {"server"}, "f:MODEL_URL": {"two.example"}, "f:MODEL_KEY": {"sk-new"}})
		wants(t, r, "MODEL_URL is no address.", `value="two.example"`, "Nothing was changed.")
		if strings.Contains(r, "sk-new") || c.done() != "" {
			t.Error("the key is in the page, or something was done")
		}
		// The key that is set is not sent to another server.
		wants(t, b.submits("/setup/model", url.Values{"way": {"server"}, "f:MODEL_URL": {"https://two.example"}}), "Saved.")
		if got := c.done(); got != "try, keep" || c.values["MODEL_KEY"] != "" || c.values["MODEL_URL"] != "https://two.example" || c.values["MODEL_NAME"] != "small" {
			t.Errorf("%s: %v", got, c.values)
		}
		c.values["MODEL_KEY"] = "sk-two"
		wants(t, b.submits("/setup/model", url.Values{"way": {"server"}, "f:MODEL_NAME": {"large"}}), "Saved.", "It answers.")
		if c.values["MODEL_KEY"] != "sk-two" || c.values["MODEL_NAME"] != "large" {
			t.Errorf("what was left empty is changed: %v", c.values)
		}
		wants(t, b.submits("/setup/model", url.Values{"way": {"server"}, "drop:MODEL_KEY": {"yes"}}), "Saved.")
		if c.values["MODEL_KEY"] != "" {
			t.Errorf("the key is still %q", c.values["MODEL_KEY"])
		}
		entries := ""
		w.do(func(ctx context.Context, tx *store.Tx) error {
			rows, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Action: "setup.keep", Limit: 10})
			entries = fmt.Sprintf("%+v", rows)
			return err
		})
		if !strings.Contains(entries, "MODEL_KEY") || strings.Contains(entries, "sk-") {
			t.Errorf("the audit log: %s", entries)
		}
	})
}

// TestSetUpIsDoubtful: values that could not be proven wait for a word, out of the page.
func TestSetUpIsDoubtful(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, w *world, c *configuration) {
		c.verdict = setup.Doubtful
		b := w.as(ann)
		form := url.Values{"way": {"server"}, "f:MODEL_KEY": {"sk-new"}}
		page := b.submits("/setup/model", form)
		wants(t, page, "found &lt;i&gt;this&lt;/i&gt;", "Keep it as it is")
		if c.values["MODEL_KEY"] != "sk-old" || strings.Contains(page, "sk-new") {
			t.Error("it is kept already, or in the page")
		}
		id := attemptID.FindStringSubmatch(page)[1]
		other := w.as(ann)
		if r := other.post("/setup/model", url.Values{"way": {"server"}, "attempt": {id}, "do": {"keep"}}); r.Code != http.StatusNotFound {
			t.Errorf("another browser keeps it: %d", r.Code)
		}
		c.refused = fault.New(fault.Invalid, "The running bot refuses it.")
		wants(t, b.submits("/setup/model", url.Values{"way": {"server"}, "attempt": {id}, "do": {"keep"}}), "The running bot refuses it.")
		c.refused = nil
		wants(t, b.submits("/setup/model", url.Values{"way": {"server"}, "attempt": {id}, "do": {"keep"}}), "Saved.")
		if c.values["MODEL_KEY"] != "sk-new" {
			t.Error("it is not kept")
		}
		c.verdict = setup.Bad
		id = "GONE"
		if r := b.post("/setup/model", url.Values{"way": {"server"}, "attempt": {id}, "do": {"keep"}}); r.Code != http.StatusNotFound {
			t.Errorf("an attempt that never was: %d", r.Code)
		}
		wants(t, b.submits("/setup/model", url.Values{"way": {"server"}, "do": {"prove"}}), "Result")
		c.done()
		if page := b.submits("/setup/model", form); strings.Contains(page, "Keep it as it is") || c.done() != "try" {
			t.Error("bad values can be kept")
		}
		_, id, _ = strings.Cut(b.post("/setup/model", form).Header().Get("Location"), "attempt=")
		c.done()
		b.submits("/setup/model", url.Values{"way": {"server"}, "attempt": {id}, "do": {"keep"}})
		if did := c.done(); id == "" || did != "try" {
			t.Errorf("whoever asks for it keeps bad values: %q", did)
		}
	})
}

func TestSetUpThroughAService(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, w *world, c *configuration) {
		c.verdict = setup.Doubtful
		b := w.as(ann)
		r := b.post("/setup/forge", url.Values{"way": {"app"}})
		page := b.send("GET", r.Header().Get("Location"), nil)
		if policy := page.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self' https://forge.example;") {
			t.Errorf("the form cannot be sent: %s", policy)
		}
		wants(t, page.Body.String(), `action="https://forge.example/new"`, "http://127.0.0.1:3000/setup/forge/back", "Continue to forge.example")
		if policy := b.send("GET", "/setup", nil).Header().Get("Content-Security-Policy"); strings.Contains(policy, "forge") {
			t.Error("forms of other pages can be sent there, too")
		}
		state := regexp.MustCompile(`name="state" value="([A-Z0-9]+)"`).FindStringSubmatch(page.Body.String())[1]
		for name, query := range map[string]string{"a guess": "state=GUESS&code=good", "no state": "code=good", "a wrong code": "state=" + state + "&code=bad"} {
			if r := b.send("GET", "/setup/forge/back?"+query, nil); r.Code != http.StatusBadRequest {
				t.Errorf("%s: %d", name, r.Code)
			}
		}
		if r := w.as(ann).send("GET", "/setup/forge/back?state="+state+"&code=good", nil); r.Code != http.StatusBadRequest {
			t.Errorf("in another browser: %d", r.Code)
		}
		c.done()
		gone, leave := context.WithCancel(t.Context()) // the person closes the browser while the service makes the key
		b.ctx, c.exchanging = gone, leave
		back := b.get("/setup/forge/back?state=" + state + "&code=good")
		b.ctx = nil
		wants(t, back, "Keep it as it is", ".env.refused", "only the bot&#39;s user can read")
		if got := c.done(); got != "try, put aside" {
			t.Errorf("done: %s", got)
		}
		if strings.Contains(back, `"made"`) || c.made != 1 {
			t.Errorf("made %d times, or in the page", c.made)
		}
		if r := b.send("GET", "/setup/forge/back?state="+state+"&code=good", nil); r.Code != http.StatusConflict || c.made != 1 {
			t.Errorf("loaded again: %d, made %d times", r.Code, c.made)
		}
		id := attemptID.FindStringSubmatch(back)[1]
		wants(t, b.submits("/setup/forge", url.Values{"way": {"app"}, "attempt": {id}, "do": {"keep"}}), "Continue at https://forge.example/install")
		if c.values["FORGE_KEY"] != "made" {
			t.Error("the key is not kept")
		}
	})
}

func TestSetUpActsAndRefuses(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, w *world, c *configuration) {
		b := w.as(ann)
		wants(t, b.submits("/setup/repository", url.Values{"way": {"add"}, "f:repository": {""}}), "Where is needed.")
		wants(t, b.submits("/setup/repository", url.Values{"way": {"add"}, "f:repository": {"bad"}}), "That is no repository.", `value="bad"`)
		wants(t, b.submits("/setup/repository", url.Values{"way": {"add"}, "f:repository": {"acme/web"}}), "Cloned. Work on it.")
		if got := c.done(); got != "act acme/web" {
			t.Error(got)
		}
		wants(t, b.get("/setup/model?way=none"), "MODEL_URL is set by the environment.")
		for name, tt := range map[string]struct {
			path string
			form url.Values
			code int
		}{
			"no such step": {"/setup/nothing", url.Values{}, http.StatusNotFound},
			"no such way":  {"/setup/model", url.Values{"way": {"other"}}, http.StatusBadRequest},
			"blocked":      {"/setup/model", url.Values{"way": {"none"}}, http.StatusConflict},
		} {
			if r := b.post(tt.path, tt.form); r.Code != tt.code {
				t.Errorf("%s: %d, want %d", name, r.Code, tt.code)
			}
		}
		for _, who := range []*browser{w.as(bob), w.as(cat)} {
			for _, path := range []string{"/setup", "/setup/model", "/setup/forge/back"} {
				if r := who.send("GET", path, nil); r.Code != http.StatusForbidden {
					t.Errorf("GET %s as another: %d", path, r.Code)
				}
			}
			if r := who.post("/setup/repository", url.Values{"way": {"add"}, "f:repository": {"x"}}); r.Code != http.StatusForbidden {
				t.Errorf("POST as another: %d", r.Code)
			}
		}
		if got := c.done(); got != "" {
			t.Errorf("done: %s", got)
		}
	})
}
