package github

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzRequests gives the server any request of a bot: it answers with JSON or
// nothing, and never with a status that GitHub does not use there.
func FuzzRequests(f *testing.F) {
	for _, seed := range [][3]string{
		{"GET", "/repos/acme/web/issues/1/comments?per_page=-1&page=99999999999", ""},
		{"POST", "/repos/acme/web/issues/1/comments", `{"body":"x"}`},
		{"PATCH", "/repos/acme/web/pulls/2", `{"labels":[1],"state":{}}`},
		{"POST", "/repos/acme/web/pulls", `{"head":"a:b:c","base":"main","title":"x"}`},
		{"POST", "/repos/acme/web/pulls/2/comments", `{"body":"x","in_reply_to":-1}`},
		{"GET", "//repos//acme/web", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, method, target, body string) {
		s := New(Options{Limits: NoLimits()})
		defer s.Close()
		s.AddRepo(Repo{Name: "acme/web"})
		ann := s.Person("ann").In("acme/web")
		ann.OpenIssue("x", "x")
		ann.OpenPull(Pull{Title: "x", Head: "fix", Files: []File{{Path: "a", Patch: "@@ -1 +1 @@\n-a\n+b"}}})
		req, err := http.NewRequestWithContext(t.Context(), method, "http://x"+target, strings.NewReader(body))
		if err != nil {
			t.Skip()
		}
		req.Header.Set("Authorization", "Bearer "+s.installationToken("acme"))
		req.Header.Set("User-Agent", "fuzz")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, req)
		if w.Code >= 500 || w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
	})
}

func (s *Server) installationToken(account string) string {
	defer s.world.writing()()
	t := &token{text: "ghs_x", installation: s.world.installationOf(s.world.know(account))}
	s.credentials.tokens[t.text] = t
	return t.text
}

// FuzzTexts reads texts of people and diffs.
func FuzzTexts(f *testing.F) {
	f.Add("- [ ] a\n```\n- [ ] b\n```\n1. [x] c", 2)
	f.Add("@@ -1,2 +1,2 @@\n a\n-b\n+c", 2)
	f.Add("@@ -x +y @@\n", 0)
	f.Add("~~~~\n```\n~~~\n~~~~\n@ann fixes #1", 1)
	f.Fuzz(func(t *testing.T, text string, n int) {
		ticked, found := tick(text, n)
		if found == (ticked == text) {
			t.Errorf("tick %d of %q", n, text)
		}
		if again, ok := tick(ticked, n); found && (!ok || !strings.EqualFold(again, text)) {
			t.Errorf("twice is not nothing: %q, %q", text, again)
		}
		hunk, inside := hunkOf(text, n)
		if inside && !strings.Contains(text, hunk) {
			t.Errorf("%q is not part of %q", hunk, text)
		}
		_, _, _ = Mentions(text), Closes(text), Visible(text)
		for _, patch := range splitDiff(text) {
			if !strings.Contains(text, patch) {
				t.Errorf("%q is not part of %q", patch, text)
			}
		}
	})
}
