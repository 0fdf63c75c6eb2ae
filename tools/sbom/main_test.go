package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestModulesOfThisProgram describes the test's own program, which is built of what
// this module requires.
func TestModulesOfThisProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := write(w, "v1.2.3", self); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("equal programs have different documents")
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if c := bom.Metadata.Component; c.Name != "remote-agent" || c.Version != "v1.2.3" {
		t.Errorf("it is about %s %s", c.Name, c.Version)
	}
	found := map[string]string{}
	for _, c := range *bom.Components {
		found[c.Name] = c.Version
	}
	if !strings.HasPrefix(found["std"], "go1.") || found["github.com/CycloneDX/cyclonedx-go"] == "" {
		t.Errorf("no standard library or no module of the encoder among %v", found)
	}
}

func TestWhatIsNoProgram(t *testing.T) {
	if err := write(&bytes.Buffer{}, "v1.2.3", "main.go"); err == nil {
		t.Error("the source of a program has a document")
	}
}
