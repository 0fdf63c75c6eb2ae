//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
)

// directory is who may, of a test.
type directory struct {
	list    []pages.Person
	waiting []sessions.Pairing
	did     []string
	err     error
}

func (d *directory) List(context.Context) ([]pages.Person, error) { return slices.Clone(d.list), nil }

func (d *directory) Waiting(context.Context) ([]sessions.Pairing, error) { return d.waiting, nil }

func (d *directory) Answer(_ context.Context, by signin.Account, number int64, role sessions.Role) (string, error) {
	d.did = append(d.did, fmt.Sprintf("%s answers %d %s", by, number, role))
	return "Answered `it`.", d.err
}

func (d *directory) Change(_ context.Context, by signin.Account, account string, to pages.Standing) (string, error) {
	d.did = append(d.did, fmt.Sprintf("%s makes %s %s", by, account, to))
	return "Changed.", d.err
}

// crowd are people with what strangers call themselves.
func crowd(now time.Time) *directory {
	d := &directory{
		list: []pages.Person{
			{Account: ann, Role: sessions.Owner, Why: "the person at the console"},
			{Account: signin.Account{Platform: "slack", ID: "T1/U1"}, Name: evil, Role: sessions.Stranger, Removed: true, Why: evil},
			{Account: bob, Name: evilName, Role: sessions.User, Why: "by console/local on 2026-01-02"},
			{Account: cat, Name: "Cat", Role: sessions.Reader, Why: "by console/local"},
			{Account: signin.Account{Platform: "telegram", ID: "77"}, Role: sessions.Owner, Why: "by TELEGRAM_OWNER_IDS"},
		},
		waiting: []sessions.Pairing{{Number: 7, Platform: "telegram", UserID: "99" + evilName, Name: evil, Code: "WDJ-BMJ", AskedAt: now, State: sessions.PairingWaiting}},
	}
	return d
}

func TestPeopleAreListedAndChanged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.used(s, "telegram/42", "m", 0, 1000, 70_000)
		d := crowd(w.now)
		w2 := newWorld(t, w.Store, func(c *pages.Config) { c.About.People = d })
		owner := w2.as(ann)
		page := owner.get("/people")
		clean(t, "/people", page)
		wants(t, page, "Requests (1)", "WDJ-BMJ", "<title>◆1 People", "Allow, read only", "removed", "viewer", "Cat (telegram/43)", "you</span>", "$0.07 today", "never seen", "the person at the console", `aria-current="page">People`)
		for who, buttons := range map[string]string{ // what there is to make of each
			"console/local": "", "slack/T1/U1": "member viewer owner", "telegram/42": "viewer owner removed", "telegram/43": "member owner removed", "telegram/77": "no-owner removed",
		} {
			var got []string
			for _, m := range regexp.MustCompile(`name="account" value="`+who+`"><input type="hidden" name="to" value="([a-z-]+)"`).FindAllStringSubmatch(page, -1) {
				got = append(got, m[1])
			}
			if strings.Join(got, " ") != buttons {
				t.Errorf("%s can be made %v, want %s", who, got, buttons)
			}
		}
		if page := owner.get("/people?q=CAT"); !strings.Contains(page, "Cat (telegram/43)") || strings.Contains(page, "telegram/77") {
			t.Errorf("somebody who is looked for in other letters:\n%s", page)
		}
		for form, want := range map[string]struct{ path, did string }{
			"number=7&role=member":                     {"/people/request", "console/local answers 7 user"},
			"number=7&role=viewer":                     {"/people/request", "console/local answers 7 reader"},
			"number=7&role=none":                       {"/people/request", "console/local answers 7 stranger"},
			"account=telegram/43&to=member":            {"/people/change", "console/local makes telegram/43 member"},
			"account=+telegram/43&to=viewer":           {"/people/change", "console/local makes telegram/43 viewer"},
			"account=telegram/43&to=owner":             {"/people/change", "console/local makes telegram/43 owner"},
			"account=telegram/77&to=no-owner&sure=yes": {"/people/change", "console/local makes telegram/77 no-owner"},
			"account=telegram/43&to=removed&sure=yes":  {"/people/change", "console/local makes telegram/43 removed"},
		} {
			values, err := url.ParseQuery(form)
			if err != nil {
				t.Fatal(err)
			}
			d.did = nil
			said := owner.follow(owner.post(want.path, values))
			if len(d.did) != 1 || d.did[0] != want.did || !strings.Contains(said, "Answered <code>it</code>.") && !strings.Contains(said, "Changed.") {
				t.Errorf("%s: %v", form, d.did)
			}
			d.did = nil
			for _, who := range []signin.Account{bob, cat} {
				if r := w2.as(who).post(want.path, values); r.Code != http.StatusForbidden || len(d.did) > 0 {
					t.Errorf("%s by %s: %d %v", form, who, r.Code, d.did)
				}
			}
		}
		for _, form := range []string{"number=7", "number=x&role=member", "number=-1&role=none", "number=7&role=owner"} {
			values, _ := url.ParseQuery(form)
			if r := owner.post("/people/request", values); r.Code != http.StatusBadRequest {
				t.Errorf("%s: %d", form, r.Code)
			}
		}
		for _, form := range []string{"account=telegram/43", "account=telegram/43&to=king", "account=telegram/43&to=removed", "account=telegram/77&to=no-owner"} {
			values, _ := url.ParseQuery(form)
			if r := owner.post("/people/change", values); r.Code != http.StatusBadRequest {
				t.Errorf("%s: %d", form, r.Code)
			}
		}
		if len(d.did) > 0 {
			t.Errorf("changed by forms that are not complete: %v", d.did)
		}
		d.err = fault.New(fault.Conflict, "Already decided: ✔ Allowed by Ann.")
		wants(t, owner.follow(owner.post("/people/request", url.Values{"number": {"7"}, "role": {"none"}})), "Already decided: ✔ Allowed by Ann.")
	})
}

func TestPeopleAreForOwnersOnlyAndInWindows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		d := &directory{}
		w2 := newWorld(t, w.Store, func(c *pages.Config) { c.About.People = d })
		owner := w2.as(ann)
		wants(t, owner.get("/people"), "Nobody is requesting access.", "Nobody has been given a role here")
		for _, who := range []signin.Account{bob, cat} {
			r := w2.as(who).send("GET", "/people", nil)
			if r.Code != http.StatusForbidden || strings.Contains(r.Body.String(), `href="/people"`) {
				t.Errorf("%s sees people: %d", who, r.Code)
			}
		}
		for i := range 230 {
			d.list = append(d.list, pages.Person{Account: signin.Account{Platform: "telegram", ID: messages.UserID(fmt.Sprintf("42%03d", i))}, Name: strings.Repeat("<", 3000), Role: sessions.User, Why: strings.Repeat("&", 3000)})
		}
		path, seen := "/people", 0
		for path != "" {
			page := owner.get(path)
			if len(page) > 300<<10 {
				t.Errorf("GET %s has %d bytes", path, len(page))
			}
			seen += strings.Count(page, "Make viewer")
			_, rest, more := strings.Cut(page, `href="/people?after=`)
			path = ""
			if more {
				rest, _, _ = strings.Cut(rest, `"`)
				path = "/people?after=" + rest
				d.list = slices.Insert(d.list, 0, pages.Person{Account: signin.Account{Platform: "a", ID: "1"}, Role: sessions.User}) // meanwhile
			}
		}
		if seen != 230 {
			t.Errorf("%d people on all pages", seen)
		}
		wants(t, owner.get("/people?q=42099"), "telegram/42099")
		wants(t, owner.get("/people?q=nobody"), "Nobody matches.")
		if r := owner.send("GET", "/people?q="+strings.Repeat("x", 201), nil); r.Code != http.StatusBadRequest {
			t.Errorf("too long a filter: %d", r.Code)
		}
	})
}
