//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"remote-agent/internal/mcpserver"
	"remote-agent/internal/pages"
	"remote-agent/internal/profile"
	"remote-agent/internal/store"
)

// hasProfile stores a profile.
func (w *world) hasProfile(p profile.Profile) profile.Profile {
	w.t.Helper()
	w.do(func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = tx.Profiles().Create(ctx, p)
		return err
	})
	return p
}

// reviewer is a profile with something that nobody may read, and a picture.
func reviewer() profile.Profile {
	p := profile.New("reviewer")
	p.Description, p.SystemPrompt = evil, "Be strict.\n"+evil
	p.AvatarImage, p.AvatarType = []byte("\x89PNG\r\n\x1a\n0000"), "image/png"
	p.MCPServers = map[string]mcpserver.Server{"issues": {Command: "issues", Env: map[string]string{"TOKEN": "s3cret"}}}
	return p
}

// textOf returns what is in the form of a page.
func textOf(t *testing.T, page string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "<textarea")
	_, rest, _ = strings.Cut(rest, ">")
	text, _, ok := strings.Cut(rest, "</textarea>")
	if !found || !ok {
		t.Fatalf("there is no form:\n%s", page)
	}
	return strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(strings.TrimPrefix(text, "\n"))
}

func TestProfilesAreWrittenOnThePage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		owner := w.as(ann)
		wants(t, owner.get("/agents"), "There are no profiles yet")
		wants(t, owner.follow(owner.post("/agents/new", url.Values{"text": {"name: triage\r\ndescription: sorts\r\n"}})), "Saved triage.", "sorts", "interactive · version 1")
		kept := w.hasProfile(reviewer())
		page := owner.get("/agents/" + kept.ID)
		clean(t, "a profile", page)
		wants(t, page, "name: reviewer", "(hidden; stays as it is)", "This also deletes 0 standing tasks and 0 memories")
		if strings.Contains(page, "s3cret") || strings.Contains(page, "avatar") {
			t.Errorf("the page shows what it must not:\n%s", page)
		}
		form := url.Values{"version": {"1"}, "text": {strings.Replace(textOf(t, page), "Be strict.", "Be kind.", 1)}}
		wants(t, owner.follow(owner.post("/agents/"+kept.ID, form)), "Saved reviewer.")
		w.do(func(ctx context.Context, tx *store.Tx) error {
			p, err := tx.Profiles().Agent(ctx, kept.ID)
			if !strings.HasPrefix(p.SystemPrompt, "Be kind.") || p.Version != 2 || p.MCPServers["issues"].Env["TOKEN"] != "s3cret" || len(p.AvatarImage) == 0 || p.AvatarType != "image/png" {
				t.Errorf("the profile: %+v", p)
			}
			return err
		})
		form.Set("text", strings.Replace(form.Get("text"), "Be kind.", "Be kind. Always.", 1))
		r := owner.post("/agents/"+kept.ID, form)
		if r.Code != http.StatusConflict {
			t.Errorf("a change of an old version: %d", r.Code)
		}
		wants(t, r.Body.String(), "Someone else changed the profile", "Be kind. Always.")
		page = owner.get("/agents/new?from=" + kept.ID)
		wants(t, page, "name: reviewer-copy")
		wants(t, owner.follow(owner.post("/agents/new", url.Values{"from": {kept.ID}, "text": {textOf(t, page)}})), "Saved reviewer-copy.")
		w.do(func(ctx context.Context, tx *store.Tx) error {
			named, err := tx.Profiles().Named(ctx, "reviewer-copy")
			if len(named) != 1 || named[0].MCPServers["issues"].Env["TOKEN"] != "s3cret" || len(named[0].AvatarImage) == 0 {
				t.Errorf("the copy: %+v", named)
			}
			return err
		})
		if r := owner.post("/agents/"+kept.ID+"/delete", url.Values{}); r.Code != http.StatusBadRequest {
			t.Errorf("deleting without the tick: %d", r.Code)
		}
		page = owner.follow(owner.post("/agents/"+kept.ID+"/delete", url.Values{"sure": {"yes"}}))
		wants(t, page, "Deleted reviewer.", "reviewer-copy")
		if r := owner.send("GET", "/agents/"+kept.ID, nil); r.Code != http.StatusNotFound {
			t.Errorf("a profile that is gone: %d", r.Code)
		}
		w.do(func(ctx context.Context, tx *store.Tx) error {
			var actions []string
			rows, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Limit: 100})
			for _, row := range rows {
				if strings.HasPrefix(row.Action, "agent.") {
					actions = append(actions, row.Actor+" "+row.Action+" "+row.Target)
				}
			}
			if got := strings.Join(actions, ", "); len(actions) != 4 || !strings.Contains(got, "console/local agent.edit reviewer") || !strings.Contains(got, "console/local agent.remove reviewer") ||
				!strings.Contains(got, "console/local agent.create triage") {
				t.Errorf("the audit log: %s", got)
			}
			return err
		})
	})
}

// A form that comes twice, as by a double click without JavaScript, gets the answer of the
// first: what it asks for is done, and done once.
func TestAProfileIsSavedAndDeletedOnceByTwoClicks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		owner := w.as(ann)
		kept := w.hasProfile(reviewer())
		twice := func(path, want string, form url.Values) {
			t.Helper()
			owner.post(path, form)
			wants(t, owner.follow(owner.post(path, form)), want)
		}
		twice("/agents/new", "Saved triage.", url.Values{"text": {"name: triage\ndescription: sorts\n"}})
		twice("/agents/new", "Saved reviewer-copy.", url.Values{"from": {kept.ID}, "text": {textOf(t, owner.get("/agents/new?from="+kept.ID))}})
		text := strings.Replace(textOf(t, owner.get("/agents/"+kept.ID)), "Be strict.", "Be kind.", 1)
		twice("/agents/"+kept.ID, "Saved reviewer.", url.Values{"version": {"1"}, "text": {text}})
		if r := owner.post("/agents/new", url.Values{"text": {"name: triage\ndescription: sorts more\n"}}); r.Code != http.StatusConflict {
			t.Errorf("another profile of the same name: %d", r.Code)
		}
		if r := owner.post("/agents/"+kept.ID, url.Values{"version": {"2"}, "text": {"name: triage\ndescription: sorts\n"}}); r.Code != http.StatusConflict {
			t.Errorf("a profile that becomes like another: %d", r.Code)
		}
		twice("/agents/"+kept.ID+"/delete", "The profile was already deleted.", url.Values{"sure": {"yes"}})
		w.do(func(ctx context.Context, tx *store.Tx) error {
			rows, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Limit: 100})
			done := map[string]int{}
			for _, row := range rows {
				done[row.Action+" "+row.Target]++
			}
			for _, action := range []string{"agent.create triage", "agent.create reviewer-copy", "agent.edit reviewer", "agent.remove reviewer"} {
				if done[action] != 1 {
					t.Errorf("%s: %d times in the audit log", action, done[action])
				}
			}
			return err
		})
	})
}

// What the page does not show goes where it went before, and nowhere else: whoever changes
// the server writes its values, too.
func TestHiddenValuesStayWithTheirServer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		owner := w.as(ann)
		p := profile.New("reviewer")
		p.MCPServers = map[string]mcpserver.Server{
			"issues": {Command: "issues", Args: []string{"--quiet"}, Env: map[string]string{"TOKEN": "s3cret"}},
			"web":    {URL: "https://mcp.example.com/", Headers: map[string]string{"Authorization": "Bearer s3cret-too"}},
		}
		kept := w.hasProfile(p)
		text := textOf(t, owner.get("/agents/"+kept.ID))
		for name, c := range map[string][3]string{
			"another address": {"https://mcp.example.com/", "https://mcp.example.org/", "mcp_servers: web points elsewhere now; enter the value of Authorization."},
			"another program": {"command: issues", "command: printenv", "mcp_servers: issues points elsewhere now; enter the value of TOKEN."},
			"another task":    {"--quiet", "--verbose", "mcp_servers: issues points elsewhere now; enter the value of TOKEN."},
		} {
			changed := strings.Replace(text, c[0], c[1], 1)
			if changed == text {
				t.Fatalf("%s: the text has no %q:\n%s", name, c[0], text)
			}
			for path, form := range map[string]url.Values{"/agents/" + kept.ID: {"version": {"1"}}, "/agents/new": {"from": {kept.ID}}} {
				form.Set("text", strings.Replace(changed, "name: reviewer", "name: reviewer-b", 1))
				r := owner.post(path, form)
				if wants(t, r.Body.String(), c[2]); r.Code != http.StatusBadRequest {
					t.Errorf("%s at %s: %d", name, path, r.Code)
				}
			}
		}
		w.do(func(ctx context.Context, tx *store.Tx) error {
			all, err := tx.Profiles().List(ctx, "")
			if len(all) != 1 || all[0].Version != 1 {
				t.Errorf("the profiles: %+v", all)
			}
			return err
		})
		form := url.Values{"version": {"1"}, "text": {strings.Replace(text, "name: reviewer", "name: reviewer-c", 1)}}
		wants(t, owner.follow(owner.post("/agents/"+kept.ID, form)), "Saved reviewer-c.")
	})
}

func TestWhatIsWrongInAProfileIsBesideIt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		owner := w.as(ann)
		kept := w.hasProfile(reviewer())
		for text, want := range map[string]string{
			"name: BAD NAME\nmode: wild\n": "mode: unknown value",
			"name: x\ncolor: red\n":        "there is no field",
			evil:                           "<li>",
			"name: reviewer\n":             "already exists",
			"name: x\nmcp_servers: {a: {command: a, env: {KEY: (hidden; stays as it is)}}}\n": "a has no KEY yet",
			"": "The file contains no profile",
		} {
			r := owner.post("/agents/new", url.Values{"text": {text}})
			page := r.Body.String()
			if r.Code != http.StatusBadRequest && r.Code != http.StatusConflict {
				t.Errorf("%q: %d", text, r.Code)
			}
			clean(t, text, page)
			wants(t, page, "Nothing was saved:", want, `aria-describedby="problems"`)
			if !strings.Contains(text, "\u202E") && textOf(t, page) != text {
				t.Errorf("%q was lost: %q", text, textOf(t, page))
			}
		}
		long := owner.post("/agents/"+kept.ID, url.Values{"version": {"1"}, "text": {strings.Repeat(`"`, 100<<10)}})
		if long.Code != http.StatusBadRequest || long.Body.Len() > 300<<10 {
			t.Errorf("much text that is no profile: %d, %d bytes", long.Code, long.Body.Len())
		}
		if r := owner.post("/agents/"+kept.ID, url.Values{"text": {"name: reviewer\n"}}); r.Code != http.StatusBadRequest {
			t.Errorf("a form without a version: %d", r.Code)
		}
		big := reviewer()
		big.Name, big.SystemPrompt = "big", strings.Repeat(`"`, 16<<10)
		for range 3 {
			big.Lore = append(big.Lore, big.SystemPrompt)
		}
		big = w.hasProfile(big)
		page := owner.get("/agents/" + big.ID)
		wants(t, page, "too long for a page")
		if len(page) > 300<<10 || strings.Contains(page, "s3cret") || strings.Contains(page, "<textarea") {
			t.Errorf("a long profile: %d bytes", len(page))
		}
	})
}

func TestOthersOnlyReadTheNamesOfProfiles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		kept := w.hasProfile(reviewer())
		for _, who := range []*browser{w.as(bob), w.as(cat)} {
			page := who.get("/agents")
			wants(t, page, "<strong>reviewer</strong>")
			if strings.Contains(page, "/agents/") || strings.Contains(page, "Be strict") {
				t.Errorf("others see more:\n%s", page)
			}
			for _, path := range []string{"/agents/new", "/agents/" + kept.ID, "/agents/new?from=" + kept.ID} {
				if r := who.send("GET", path, nil); r.Code != http.StatusForbidden || strings.Contains(r.Body.String(), "Be strict") {
					t.Errorf("GET %s: %d", path, r.Code)
				}
			}
			for _, path := range []string{"/agents/new", "/agents/" + kept.ID, "/agents/" + kept.ID + "/delete"} {
				if r := who.post(path, url.Values{"text": {"name: x\n"}, "version": {"1"}, "sure": {"yes"}}); r.Code != http.StatusForbidden {
					t.Errorf("POST %s: %d", path, r.Code)
				}
			}
		}
		owner := w.as(ann)
		for _, path := range []string{"/agents/" + url.PathEscape(evilName), "/agents/new?from=" + url.QueryEscape(evilName)} {
			if r := owner.send("GET", path, nil); r.Code != http.StatusNotFound {
				t.Errorf("GET %s: %d", path, r.Code)
			}
		}
		if r := owner.send("GET", "/agents?after=a&after=b", nil); r.Code != http.StatusBadRequest {
			t.Errorf("a wrong address: %d", r.Code)
		}
		for i := range 150 {
			p := profile.New(fmt.Sprintf("p%03d", i))
			p.Description = strings.Repeat("<", 5000)
			w.hasProfile(p)
		}
		path, seen := "/agents", 0
		for path != "" {
			page := owner.get(path)
			if len(page) > 300<<10 {
				t.Errorf("GET %s has %d bytes", path, len(page))
			}
			seen += strings.Count(page, ">Duplicate<")
			path = ""
			if _, rest, ok := strings.Cut(page, `href="/agents?after=`); ok {
				after, _, _ := strings.Cut(rest, `"`)
				path = "/agents?after=" + after
			}
		}
		if seen != 151 {
			t.Errorf("%d profiles are listed", seen)
		}
	})
}

// The form has a profile as it is stored, so one with a secret is shown without it and
// changed elsewhere.
func TestASecretInAProfileIsNotInItsForm(t *testing.T) {
	t.Parallel()
	eachWith(t, func(c *pages.Config) {
		c.Redact = func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }
	}, func(t *testing.T, w *world) {
		p := profile.New("keeper")
		p.SystemPrompt = "Log in with hunter2."
		p = w.hasProfile(p)
		for _, path := range []string{"/agents/" + p.ID, "/agents/new?from=" + p.ID} {
			page := w.as(ann).get(path)
			wants(t, page, "contains a secret from the configuration", "Log in with [redacted].")
			if strings.Contains(page, "hunter2") || strings.Contains(page, "<textarea") {
				t.Errorf("%s has a secret, or a form:\n%s", path, page)
			}
		}
	})
}
