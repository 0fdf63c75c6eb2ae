package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by the linker (-X main.release=v1.2.3) in released binaries.
var release string

// version returns the release, else what the Go tool recorded about the build.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}

type versionCommand struct {
	JSON bool `help:"Print JSON."`
}

func (c versionCommand) Run(p *program) error {
	if c.JSON {
		return json.NewEncoder(p.stdout).Encode(map[string]string{
			"version": version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
		})
	}
	_, err := fmt.Fprintln(p.stdout, versionLine())
	return err
}

func versionLine() string {
	return fmt.Sprintf("bot %s (%s, %s/%s)", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
