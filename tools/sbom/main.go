// Command sbom prints what a program was built from, as a CycloneDX document: the
// modules that the Go linker noted in it. Equal programs have equal documents.
//
//	sbom v1.2.3 bot > bot.cdx.json
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION PROGRAM")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write writes the document of the program in a file.
func write(w io.Writer, version, file string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return err
	}
	main := component(cdx.ComponentTypeApplication, "remote-agent", version, "")
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &main}
	parts := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", info.GoVersion, "")}
	refs := []string{parts[0].BOMRef}
	for _, m := range info.Deps {
		c := moduleOf(m)
		parts, refs = append(parts, c), append(refs, c.BOMRef)
	}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

func moduleOf(m *debug.Module) cdx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	return component(cdx.ComponentTypeLibrary, m.Path, m.Version, m.Sum)
}

// component describes a module. Its sum is the one that go.sum has: a hash of the
// module's files, not of one file, and therefore a property here.
func component(kind cdx.ComponentType, name, version, sum string) cdx.Component {
	url := "pkg:golang/" + name + "@" + version
	c := cdx.Component{Type: kind, BOMRef: url, Name: name, Version: version, PackageURL: url}
	if sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: sum}}
	}
	return c
}
