package command_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/command"
)

func TestInvoked(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want command.Call
	}{
		"Itself":       {"/plan add a flag", command.Call{Name: "plan", Args: []string{"add", "a", "flag"}, Rest: "add a flag"}},
		"Named":        {`/command-invoke Plan-Feature "a flag" now`, command.Call{Name: "plan_feature", Args: []string{"a flag", "now"}, Rest: `"a flag" now`}},
		"WithASlash":   {"/command_invoke /execute p-2", command.Call{Name: "execute", Args: []string{"p-2"}, Rest: "p-2"}},
		"OnlyTheName":  {"/command-invoke review", command.Call{Name: "review", Args: []string{}}},
		"NoName":       {"/command-invoke", command.Call{Name: command.Invoke}},
		"NotAName":     {"/command-invoke ../x y", command.Call{Args: []string{"y"}, Rest: "y"}},
		"AcrossALine":  {"/command-invoke review\nall of it", command.Call{Name: "review", Args: []string{"all", "of", "it"}, Rest: "all of it"}},
		"NotInvoking":  {"/help command-invoke", command.Call{Name: "help", Args: []string{"command-invoke"}, Rest: "command-invoke"}},
		"OpenQuotes":   {`/command-invoke review "it`, command.Call{Name: "review", Args: []string{"it"}, Rest: `"it`}},
		"KeepsSpacing": {"/command-invoke review  a   b", command.Call{Name: "review", Args: []string{"a", "b"}, Rest: "a   b"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, ok := command.Parse(tt.text)
			if !ok {
				t.Fatalf("%q is not a command", tt.text)
			}
			if diff := cmp.Diff(tt.want, call.Invoked()); diff != "" {
				t.Errorf("Invoked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutFirst(t *testing.T) {
	t.Parallel()
	call := command.Call{Name: "execute", Args: []string{"p-2", "quickly"}, Rest: "p-2  quickly"}
	want := command.Call{Name: "execute", Args: []string{"quickly"}, Rest: "quickly"}
	if diff := cmp.Diff(want, call.WithoutFirst()); diff != "" {
		t.Errorf("WithoutFirst (-want +got):\n%s", diff)
	}
	if got := (command.Call{Name: "execute", Rest: ""}).WithoutFirst(); got.Name != "execute" || len(got.Args) != 0 {
		t.Errorf("without arguments it became %+v", got)
	}
}
