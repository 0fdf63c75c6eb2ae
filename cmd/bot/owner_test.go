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
		{"owner add irc/ann", exitUsage, `Unknown platform "irc"`},
		{"owner add console/x", exitUsage, "belongs to whoever runs the program"},
		{"owner add slack/U045EF6GH", exitUsage, "SLACK_OWNER_IDS lists the owners on slack"},
		{"owner add slack/U012AB3CD", exitOK, "is already an owner"},
		{"owner rm slack/U012AB3CD", exitUsage, "SLACK_OWNER_IDS lists slack/U012AB3CD"},
		{"owner rm telegram/42", exitFailed, "telegram/42 is not an owner"},
		{"owner add telegram/42", exitOK, "is an owner now"},
		{"owner add telegram/42", exitOK, "is already an owner"},
		{"owner list", exitOK, "telegram/42: owner, by cli on 20"},
		{"person allow telegram/42", exitOK, "is already an owner"},
		{"person allow telegram/7", exitOK, "telegram/7 can already use the bot."},
		{"person allow telegram/8", exitOK, "can use the bot now"},
		{"person remove telegram/7", exitOK, "They are still listed in TELEGRAM_ALLOWED_USER_IDS"},
		{"person remove telegram/7", exitOK, "was already removed"},
		{"person list", exitOK, "telegram/7: removed, by cli on 20"},
		{"owner rm telegram/42", exitOK, "is no longer an owner and can no longer use the bot"},
		{"person remove slack/U012AB3CD", exitOK, "They are still listed in SLACK_OWNER_IDS"},
		{"owner add slack/U012AB3CD", exitOK, "is an owner now"},
		{"resume", exitOK, "not halted"},
		{"halt --reason drill", exitOK, "Halted. Running work is being stopped"},
		{"halt", exitOK, "already halted by cli"},
		{"resume", exitOK, "Resumed after a halt by cli"},
	} {
		r := bot(t, environ, strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.want) {
			t.Errorf("bot %s: code %d, want %d with %q\n%s%s", c.args, r.code, c.code, c.want, r.stdout, r.stderr)
		}
	}
}
