package app_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/docs"
	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/option"
)

// loaded reads all options of the program from an environment and the text of a .env file.
func loaded(t *testing.T, dotenv string, environ ...string) (config.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(file, []byte(dotenv), 0o600); err != nil {
		t.Fatal(err)
	}
	return app.LoadConfig(config.Source{Environ: environ, EnvFile: file})
}

func TestExampleFileMatchesTheTable(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	if err := config.WriteExample(&want, app.Sections()...); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "..", ".env.example"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf(".env.example is out of date, `make generate` writes it (-want +got):\n%s", diff)
	}
}

// TestExampleIsUsable takes the # away from every option: each must load.
func TestExampleIsUsable(t *testing.T) {
	t.Parallel()
	var example bytes.Buffer
	if err := config.WriteExample(&example, app.Sections()...); err != nil {
		t.Fatal(err)
	}
	if c, err := loaded(t, example.String()); err != nil || len(c.Warnings) != 0 || c.Assistant != config.AssistantDemo {
		t.Errorf("the example as it is: %+v, %v", c, err)
	}
	for _, o := range config.Options(app.Sections()...) {
		if !strings.Contains(example.String(), "\n#"+o.Name+"=") {
			t.Errorf("no %s in the example", o.Name)
		}
	}
	var text strings.Builder
	for line := range strings.Lines(example.String()) {
		if strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "# ") && strings.Contains(line, "=") {
			line = line[1:]
		}
		text.WriteString(line)
	}
	c, err := loaded(t, text.String(), "OPENAI_API_KEY=k")
	if err != nil || len(c.Warnings) != 0 || c.SystemPrompt != "Answer briefly." {
		t.Errorf("the example with all options set: %v, warnings %q, prompt %q", err, c.Warnings, c.SystemPrompt)
	}
}

func TestTableIsSound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range config.Options(app.Sections()...) {
		if seen[o.Flag()] {
			t.Errorf("flag --%s twice", o.Flag())
		}
		seen[o.Flag()] = true
		if o.Help == "" || o.Group == "" || (o.Default == "") == (o.Empty == "") {
			t.Errorf("%s lacks help or group, or has both or none of Default and Empty", o.Name)
		}
		if o.Secret && o.Flag() != strings.ToLower(strings.ReplaceAll(o.Name, "_", "-"))+"-file" {
			t.Errorf("the secret %s has the flag --%s", o.Name, o.Flag())
		}
	}
}

// TestSectionsHaveNamesAndPages: a platform or an assistant has a name that conversations
// can keep, options that begin with it, and a place in the manual.
func TestSectionsHaveNamesAndPages(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	readme, assistants := read("README.md"), read("docs/assistants.md")
	form := regexp.MustCompile(`^[a-z][a-z0-9]{0,19}$`) // platform_type and ai_assistant_type hold 20 bytes
	for _, s := range app.Sections() {
		name := ""
		switch s := s.(type) {
		case option.Host:
			name = s.Accounts()
			if _, err := docs.Manual.Open(name + ".md"); err != nil || !strings.Contains(readme, "docs/"+name+".md") {
				t.Errorf("docs/%s.md is not in docs/docs.go or not in README.md: %v", name, err)
			}
		case option.Answerer:
			name = s.Assistant()
			row, said := "\n| `"+name+"` |", regexp.MustCompile("This page calls .*`"+name+"`.* \\*API assistants\\*")
			if !strings.Contains(assistants, row) || !said.MatchString(assistants) {
				t.Errorf("docs/assistants.md has no row for %s, or does not call it an API assistant", name)
			}
		}
		if !form.MatchString(name) {
			t.Errorf("%T has the name %q", s, name)
		}
		for _, o := range s.Options() {
			if !strings.HasPrefix(o.Name, strings.ToUpper(name)+"_") {
				t.Errorf("the option %s of %s does not begin with its name", o.Name, name)
			}
		}
	}
}

// TestLiveOptionsAreTaken gives every option that a running process takes another
// value, and sees that nothing of it is left for a restart.
func TestLiveOptionsAreTaken(t *testing.T) {
	t.Parallel()
	const key = "OPENAI_API_KEY=sk-0123456789abcdef"
	before, err := loaded(t, "", key)
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, o := range config.Options(app.Sections()...) {
		if !o.Live {
			continue
		}
		tested++
		next := withAnother(t, o, before, key)
		live, restart := before.Changes(next)
		if !slices.Equal(live, []string{o.Name}) || len(restart) > 0 {
			t.Errorf("%s changed: %v live, %v need a restart", o.Name, live, restart)
		}
		after := before.WithLive(next)
		if live, _ := after.Changes(next); len(live) > 0 {
			t.Errorf("after the reload %v still differ", live)
		}
		if !reflect.DeepEqual(after.Sections, next.Sections) {
			t.Errorf("the section of %s does not take it", o.Name)
		}
	}
	if tested < 20 {
		t.Errorf("only %d options are live", tested)
	}
}

// withAnother returns a configuration in which an option has another value than before:
// its example, or something else that it takes.
func withAnother(t *testing.T, o option.Option, before config.Config, environ ...string) config.Config {
	t.Helper()
	for _, value := range []string{o.Example, "7", "7m", "70000", "debug"} {
		next, err := loaded(t, "", append(slices.Clip(environ), o.Name+"="+value)...)
		if err != nil {
			continue
		}
		if live, restart := before.Changes(next); len(live)+len(restart) > 0 {
			return next
		}
	}
	t.Fatalf("%s takes no value of those that are tried here: give it an Example that is not its default", o.Name)
	return config.Config{}
}
