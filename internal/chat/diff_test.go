package chat

import (
	"strings"
	"testing"

	"remote-agent/internal/codebase"
	"remote-agent/internal/messages"
	"remote-agent/internal/redact"
)

// TestDiffSaysThatItIsCut: a patch that was cut looks like a whole one.
func TestDiffSaysThatItIsCut(t *testing.T) {
	t.Parallel()
	short, long := "+one\n+two\n", strings.Repeat("+line\n", maxInlineDiff)
	for name, c := range map[string]struct {
		patch  string
		cut    bool
		asFile bool
		want   []string
		never  string
	}{
		"Whole":         {short, false, false, []string{"+two"}, "too large"},
		"WholeFile":     {short, false, true, []string{"a | 2"}, "too large"},
		"CutFile":       {short, true, true, []string{"⚠ The patch is too large: only its first 2 lines are here"}, "+two"},
		"CutShort":      {short, true, false, []string{"+two", "⚠ The patch is too large"}, "more bytes"},
		"LongInline":    {long, false, false, []string{" more bytes of the patch are not shown"}, "at least"},
		"LongCutInline": {long, true, false, []string{"at least ", " more bytes of the patch are not shown"}, "too large"},
	} {
		got := diffReply("bot/1", codebase.Changes{Stat: "a | 2 ++", Patch: []byte(c.patch), Truncated: c.cut}, nil, c.asFile)
		for _, want := range c.want {
			if !strings.Contains(got.Text, want) {
				t.Errorf("%s: no %q in %.300q", name, want, got.Text)
			}
		}
		if strings.Contains(got.Text, c.never) {
			t.Errorf("%s: %q in %.300q", name, c.never, got.Text)
		}
		if (len(got.Files) == 1) != c.asFile {
			t.Errorf("%s: %d files", name, len(got.Files))
		}
	}
}

// TestDiffNamesWhatItDoesNotCompare: "No changes" would be wrong of an assistant that
// has cloned something into the worktree.
func TestDiffNamesWhatItDoesNotCompare(t *testing.T) {
	t.Parallel()
	for _, patch := range []string{"", "+one\n"} {
		got := diffReply("bot/1", codebase.Changes{Patch: []byte(patch), Unsaved: []string{"lib/s", "made/"}}, nil, false).Text
		if !strings.Contains(got, "⚠ Not compared") || !strings.Contains(got, "lib/s\nmade/") {
			t.Errorf("%q", got)
		}
	}
}

// TestDiffShowsNoBytes: a picture that was changed is thousands of lines of a patch that
// nobody reads, and they took the place of what somebody would.
func TestDiffShowsNoBytes(t *testing.T) {
	t.Parallel()
	const before, after = "diff --git a/a.png b/a.png\nindex 00..ff 100644\n", "diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-GIT binary patch\n+two\n"
	patch := before + "GIT binary patch\nliteral 4\nLcmZQzWcm*P0SW;F\n\nliteral 9\nzcmV(jK=\n\n" + after
	c := codebase.Changes{Patch: []byte(patch)}
	if got := diffReply("bot/1", c, nil, false).Text; !strings.Contains(got, before+"Binary file; its content is not shown.\n"+after) {
		t.Errorf("in the text: %s", got)
	}
	if got := diffReply("bot/1", c, nil, true).Files; len(got) != 1 || string(got[0].Data) != patch {
		t.Error("the file cannot be applied")
	}
	c.Truncated = true
	if got := diffReply("bot/1", c, nil, true).Text; !strings.Contains(got, "only its first 15 lines are here") {
		t.Errorf("of the file, which has its bytes: %s", got)
	}
}

// TestDiffShowsNoCredential: what an assistant writes into a file is not a person's word.
func TestDiffShowsNoCredential(t *testing.T) {
	t.Parallel()
	const secret = "my-own-\"quoted\"-secret"
	token := "ghp_" + strings.Repeat("aB3", 12)
	c := codebase.Changes{Patch: []byte("+a=" + secret + "\n+b " + token + "\n"), Stat: token + " | 1 +", Unsaved: []string{token}}
	for _, asFile := range []bool{false, true} {
		got := diffReply("bot/1", c, redact.New(secret), asFile)
		said := got.Text
		for _, f := range got.Files {
			said += string(f.Data)
		}
		if strings.Contains(said, token) || strings.Contains(said, secret) || strings.Count(said, redact.Mask) != 4 || !strings.Contains(got.Text, "⚠ Credentials in the patch are masked") {
			t.Errorf("as a file %v: %s", asFile, said)
		}
	}
	if got := diffReply("bot/1", codebase.Changes{Patch: []byte("+two\n")}, redact.New(secret), true).Text; strings.Contains(got, "masked") {
		t.Errorf("without any: %s", got)
	}
}

// A name cannot add a line to a commit, or another address.
func TestCoAuthorsAreOneAddress(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"Ann <x@y>\nB": "Ann x@yB <ann@example.com>", "\n<>": "42 <ann@example.com>"} {
		got := coAuthors(messages.Inbound{Sender: messages.Sender{ID: "42", Name: name, Email: "ann@example.com"}})
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}
