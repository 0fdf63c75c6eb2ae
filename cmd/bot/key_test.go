package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestKeysFromTheCommandLine(t *testing.T) {
	environ := []string{"DATA_DIR=" + filepath.Join(t.TempDir(), "data")}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"key list", exitUsage, "There is no database"},
		{"key create --name ci --scope sessions:read", exitUsage, "There is no database"},
		{"migrate up", exitOK, "applied"},
		{"key list", exitOK, "no keys"},
		{"key create", exitUsage, "--name"},
		{"key create --name ci", exitUsage, "--scope"},
		{"key create --name ci --scope read", exitUsage, `unknown scope "read"; use sessions:read, sessions:write`},
		{"key create --name a/b --scope sessions:read", exitUsage, "not a valid key name"},
		{"key create --name ci --scope sessions:read --expires soon", exitUsage, "90d or 12h"},
		{"key create --name ci --scope sessions:read --expires=", exitUsage, "90d or 12h, or never"}, // of a variable that is not set
		{"key create --name ci --scope sessions:read --expires=-1d", exitUsage, "90d or 12h"},
		{"key create --name ci --scope sessions:read --expires 1s", exitUsage, "from a minute"},
		{"key create --name ci --scope sessions:read --expires 99999999d", exitUsage, "to ten years"},
		{"key list", exitOK, "no keys"},
		{"key create --name ci --scope sessions:read,memories:read --scope agents:read --expires 90d", exitOK, "for sessions:read,memories:read,agents:read; it expires 20"},
		{"key create --name ci --scope sessions:read", exitFailed, "A key named ci already exists"},
		{"key list", exitOK, "live     ci  sessions:read,memories:read,agents:read  created 20"},
		{"key list", exitOK, "never used"},
		{"key revoke ci", exitUsage, "not a key ID"},
		{"key revoke aaaaaaaaaa", exitFailed, "no such key"},
	} {
		r := bot(t, environ, strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.want) {
			t.Errorf("bot %s: code %d, want %d with %q\n%s%s", c.args, r.code, c.code, c.want, r.stdout, r.stderr)
		}
	}
	r := bot(t, environ, "key", "create", "--name", "off", "--scope", "sessions:read", "--api", "off")
	if !regexp.MustCompile(`^rak_[a-z2-7]{10}_[a-z2-7]{52}\n$`).MatchString(r.stdout) || !strings.Contains(r.stderr, "API=off") {
		t.Errorf("only the key goes to stdout: %+v", r)
	}
	token := strings.TrimSpace(r.stdout)
	if list := bot(t, environ, "key", "list"); strings.Contains(list.stdout, token[15:]) || !strings.Contains(list.stdout, "does not expire") {
		t.Errorf("list: %+v", list)
	}
	for _, want := range []string{"revoked ", "is already revoked"} {
		if r := bot(t, environ, "key", "revoke", token); r.code != exitOK || !strings.Contains(r.stdout, want) || strings.Contains(r.stdout+r.stderr, token) {
			t.Errorf("revoke: %+v, want %q", r, want)
		}
	}
	if list := bot(t, environ, "key", "list"); !strings.Contains(list.stdout, "revoked  off") {
		t.Errorf("list: %+v", list)
	}
}
