package anthropic

import (
	"testing"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/assistanttest"
	"remote-agent/internal/option"
)

// TestKindMakesTheModelThatItsOptionsSay has each option arrive where it is used.
func TestKindMakesTheModelThatItsOptionsSay(t *testing.T) {
	t.Parallel()
	read := func(values map[string]string) *kind {
		k := Kind().(*kind)
		assistanttest.Parse(t, k.Options(), values)
		return k
	}
	plain := read(nil)
	if want := (kind{API: assistant.API{Name: Name, Official: defaultBaseURL, Asked: "claude-sonnet-4-6"}, maxTokens: 16_000}); *plain != want || plain.Configured() || plain.Address() != defaultBaseURL {
		t.Errorf("without options: %+v", *plain)
	}
	k := read(map[string]string{
		"ANTHROPIC_API_KEY": "sk-ant", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1/", "ANTHROPIC_MODEL": "m",
		"ANTHROPIC_MAX_TOKENS": "4097", "ANTHROPIC_THINKING_TOKENS": "4096", "ANTHROPIC_EFFORT": "XHIGH",
	})
	made, err := k.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := made.(*Model)
	if !k.Configured() || m.key != "sk-ant" || m.address != "http://127.0.0.1:1/v1/messages" || m.Model() != "m" || m.maxTokens != 4097 || m.thinking != 4096 || m.effort != "xhigh" {
		t.Errorf("made %+v", m)
	}
	if now := plain.WithLive(k).(*kind); now.Asked != "m" || now.Configured() {
		t.Errorf("while it runs, it took %+v", now)
	}
	c := option.Check{Assistant: "anthropic", Sound: func(...string) bool { return true }}
	if plain.Check(&c); len(c.Problems) != 1 {
		t.Errorf("chosen without a key: problems %q", c.Problems)
	}
}
