package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFinding2OwnersAndPeopleFromTheCommandLine(t *testing.T) {
	environ := []string{"DATA_DIR=" + filepath.Join(t.TempDir(), "data"), "SLACK_OWNER_IDS=U012AB3CD", "TELEGRAM_ALLOWED_USER_IDS=7"}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"owner list", exitUsage, "There is no database"},
		{"halt", exitUsage, "There is no database"},
		{"migrate up", exitOK, "applied"},
		{"owner list", exitOK, "slack/U012AB3CD: owner, by SLACK_OWNER_IDS"},
		{"owner add", exitUsage, "needs <account>"},
		{"owner add 42", exitUsage, "use platform/id"},
		{"owner add telegram/@ann", exitUsage, "Names can change hands"},
		{"owner add irc/ann", exitUsage, `no platform "irc"`},
		{"owner add console/x", exitUsage, "has the program itself"},
		{"owner add slack/U045EF6GH", exitUsage, "SLACK_OWNER_IDS lists the owners on slack"},
		{"owner add slack/U012AB3CD", exitOK, "is an owner already"},
		{"owner rm slack/U012AB3CD", exitUsage, "SLACK_OWNER_IDS names slack/U012AB3CD"},
		{"owner rm telegram/42", exitFailed, "telegram/42 is no owner"},
		{"owner add telegram/42", exitOK, "is an owner from now on"},
		{"owner add telegram/42", exitOK, "is an owner already"},
		{"owner list", exitOK, "telegram/42: owner, by cli on 20"},
		{"person allow telegram/42", exitOK, "may use the bot already, as owner"},
		{"person allow telegram/7", exitOK, "may use the bot already, as user"},
		{"person allow telegram/8", exitOK, "may use the bot from now on"},
		{"person remove telegram/7", exitOK, "TELEGRAM_ALLOWED_USER_IDS still names them"},
		{"person remove telegram/7", exitOK, "was removed already"},
		{"person list", exitOK, "telegram/7: removed, by cli on 20"},
		{"owner rm telegram/42", exitOK, "is no owner any more, and may not use the bot"},
		{"person remove slack/U012AB3CD", exitOK, "SLACK_OWNER_IDS still names them"},
		{"owner add slack/U012AB3CD", exitOK, "is an owner from now on"},
		{"resume", exitOK, "not halted"},
		{"halt --reason drill", exitOK, "Halted: running turns are being stopped"},
		{"halt", exitOK, "halted already, by cli"},
		{"resume", exitOK, "Resumed after a halt by cli"},
	} {
		r := bot(t, environ, strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.want) {
			t.Errorf("bot %s: code %d, want %d with %q\n%s%s", c.args, r.code, c.code, c.want, r.stdout, r.stderr)
		}
	}
}
