package openai

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
	if want := (kind{API: assistant.API{Name: Name, Official: defaultBaseURL, Asked: "gpt-5-mini"}}); *plain != want || plain.Configured() || plain.Address() != defaultBaseURL {
		t.Errorf("without options: %+v", *plain)
	}
	k := read(map[string]string{"OPENAI_API_KEY": "sk-other", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1/", "OPENAI_MODEL": "m"})
	made, err := k.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := made.(*Model)
	if !k.Configured() || m.key != "sk-other" || k.Address() != "http://127.0.0.1:1/v1" || m.public || m.Model() != "m" {
		t.Errorf("made %+v", m)
	}
	if now := plain.WithLive(k).(*kind); now.Asked != "m" || now.Configured() {
		t.Errorf("while it runs, it took %+v", now)
	}
	c := option.Check{Assistant: "openai", Sound: func(...string) bool { return true }}
	if plain.Check(&c); len(c.Problems) != 1 {
		t.Errorf("chosen without a key: problems %q", c.Problems)
	}
}
