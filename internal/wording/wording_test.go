package wording_test

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/wording"
)

func TestClock(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 s", 12 * time.Second: "12 s", 59*time.Second + 600*time.Millisecond: "1:00",
		245 * time.Second: "4:05", 3599 * time.Second: "59:59", time.Hour: "1:00:00", 3723 * time.Second: "1:02:03",
		-3 * time.Hour: "0 s",
	} {
		if got := wording.Clock(d); got != want {
			t.Errorf("Clock(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"äöü", 2, "äö"}, {"abc", 0, ""}} {
		if got := wording.Head(tt.text, tt.n); got != tt.want {
			t.Errorf("Head(%q, %d) = %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{{"", 3, ""}, {"äöü", 3, "äöü"}, {"äöüß", 3, "äö…"}} {
		if got := wording.Cut(tt.text, tt.n); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}

func TestAgo(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		-time.Minute: "just now", 0: "just now", time.Minute - 1: "just now", time.Minute: "1 minute ago", time.Hour - 1: "59 minutes ago",
		time.Hour: "1 hour ago", day - 1: "23 hours ago", day: "1 day ago", 60*day - 1: "59 days ago", 60 * day: "2 months ago",
	} {
		if got := wording.Ago(now.Add(-d), now); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

func TestBecause(t *testing.T) {
	t.Parallel()
	if got := wording.Because("") + wording.Because("it rains"); got != ": it rains" {
		t.Errorf("no reason and a reason are %q", got)
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Ann":                             "`Ann`",
		"  Ann\n# B\t`c`  ":               "`Ann # B 'c'`",
		"\u202eevil\u2066\u200b\ufeff":    "`evil`",
		"a\u2028b\u2029c\u0000\x1b[2J":    "`a b c [2J`",
		"\U000E0041\U000E0042":            "someone without a name",
		"":                                "someone without a name",
		"\xff\xfeé 日本":                    "`é 日本`",
		strings.Repeat("x", 60) + "yz":    "`" + strings.Repeat("x", 60) + "`",
		"a\uFFFDb":                        "`ab`",
		"<!channel> @everyone **b** <b>x": "`<!channel> @everyone **b** <b>x`",
	} {
		if got := wording.Name(name); got != want {
			t.Errorf("Name(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestWho(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Ann": "Ann", "Jean-Luc O'Neil": "Jean-Luc O'Neil", "Ḥana 2": "Ḥana 2", "": "telegram/42", " \u200b": "telegram/42",
		"*Ann*": "`*Ann*`", "@ann": "`@ann`", "\u200b\u200c": "telegram/42", "क्षेत्र": "क्षेत्र", "a`b": "a'b", "ann.com": "`ann.com`", "x\ny": "x y",
	} {
		if got := wording.Who(name, "telegram/42"); got != want {
			t.Errorf("Who(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestLiteral(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "Edit server_test.go +12 −3": "Edit server_test.go +12 −3", "Fetch https://a.b/c_d": "Fetch https://a.b/c_d",
		"Edit src/__init__.py": "`Edit src/__init__.py`", "Read _a.py": "`Read _a.py`", "_a_": "`_a_`", `Search "*.go"`: "`Search \"*.go\"`",
		"[x](https://a.b)": "`[x](https://a.b)`", "Read `a`": "`Read 'a'`", `a\*b`: "`a\\*b`", "<b>": "`<b>`", "~~a~~": "`~~a~~`",
	} {
		if got := wording.Literal(text); got != want {
			t.Errorf("Literal(%q) = %q, want %q", text, got, want)
		}
	}
}
