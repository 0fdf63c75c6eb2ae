package docs_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"
)

var write = flag.Bool("write", false, "write openapi.yaml.s2")

// TestPackHasTheDocument compares the text: how it is compressed may differ from one
// version of the library to the next.
func TestPackHasTheDocument(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if *write {
		if err := os.WriteFile("openapi.yaml.s2", s2.EncodeBest(nil, want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := os.ReadFile("openapi.yaml.s2")
	if err != nil {
		t.Fatal(err)
	}
	got, err := s2.Decode(nil, packed)
	if err != nil {
		t.Fatalf("openapi.yaml.s2 cannot be read (%v): run make generate", err)
	}
	if diff := cmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("openapi.yaml.s2 is not what openapi.yaml is: run make generate (-packed +file):\n%s", diff)
	}
}
