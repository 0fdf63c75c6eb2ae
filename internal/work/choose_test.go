package work_test

import (
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/work"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	var all []sessions.Codebase
	for _, name := range []string{"acme/api", "acme/web", "acme/web-admin", "acme/2fa", "beta/site"} {
		all = append(all, sessions.Codebase{Name: name})
	}
	tests := map[string]struct {
		want string
		kind fault.Kind
		says []string
	}{
		"1":        {want: "acme/api"},
		"5":        {want: "beta/site"},
		"0":        {kind: fault.NotFound},
		"6":        {kind: fault.NotFound, says: []string{"5 repositories"}},
		"2fa":      {want: "acme/2fa"}, // a name and not number 2
		"02":       {kind: fault.NotFound},
		"+1":       {kind: fault.NotFound},
		"acme/web": {want: "acme/web"}, // exact before prefix
		"ACME/WEB": {want: "acme/web"},
		"beta":     {want: "beta/site"},
		"sit":      {want: "beta/site"},
		"web":      {kind: fault.Invalid, says: []string{"acme/web, acme/web-admin"}},
		"acme":     {kind: fault.Invalid},
		"nowhere":  {kind: fault.NotFound, says: []string{"`/repos` lists"}},
	}
	for what, tt := range tests {
		got, err := work.Choose(all, what, "/repos")
		if got.Name != tt.want || fault.KindOf(err) != tt.kind {
			t.Errorf("Choose(%q) = %q, %v; want %q, %q", what, got.Name, err, tt.want, tt.kind)
		}
		for _, s := range tt.says {
			if !strings.Contains(fault.Public(err), s) {
				t.Errorf("Choose(%q) says %q, without %q", what, fault.Public(err), s)
			}
		}
	}
}
