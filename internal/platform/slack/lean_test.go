package slack_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"remote-agent/internal/platform/slack"
)

// TestMentionsAreTakenOutAsByAPattern compares what is done by hand for each event with
// the pattern that says what it means.
func TestMentionsAreTakenOutAsByAPattern(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(`[ \t]*<@U1(\|[^<>]*)?>[ \t]*[,:]?[ \t]*`)
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{
			"<@U1>", "<@U1|ann>", "<@U1|a<b>", "<@U1|", "<@U12>", "<@U2>", "<@U1", ">", " ", "\t", "\n", ",", ":", "hello", "ä",
		}), 0, 12).Draw(t, "parts")
		text := strings.Join(parts, "")
		var kept []string
		for _, part := range pattern.Split(text, -1) {
			if strings.TrimSpace(part) != "" {
				kept = append(kept, part)
			}
		}
		if diff := cmp.Diff(strings.TrimSpace(strings.Join(kept, " ")), slack.WithoutMention(text, "U1")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	})
}

func FuzzWithoutSecrets(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { "token" : "t" , "a" : [ 1 , {"token":"x"} ], "response_url":"u" } `, `{"\u0074oken":"t","b":"},]\"{"}`, `[1]`, `"token"`, `{"a":`, `{"a":1,"a":2}`,
		`{"response_urls":[{"response_url":"u"}],"n":-1.5e3,"t":true,"z":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		got := slack.WithoutSecrets(payload)
		var want, have map[string]any
		if json.Unmarshal(payload, &want) != nil || want == nil {
			if string(got) != string(payload) {
				t.Errorf("%q, which is no object, becomes %q", payload, got)
			}
			return
		}
		maps.DeleteFunc(want, func(name string, _ any) bool {
			return name == "token" || name == "response_url" || name == "response_urls"
		})
		if err := json.Unmarshal(got, &have); err != nil {
			t.Fatalf("%q becomes %q: %v", payload, got, err)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%q (-want +got):\n%s", payload, diff)
		}
	})
}
