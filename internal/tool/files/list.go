package files

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/tool"
)

const defaultEntries = 500

var listSpec = messages.ToolSpec{
	Name: NameList,
	Description: "List the files below a folder, one path a line. What .gitignore leaves out is left out, unless all is true. " +
		"With depth, folders at that depth are listed with a slash instead of their content.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"Folder relative to the top folder; the top folder if it is missing"},` +
		`"glob":{"type":"string","description":"Only paths that fit, such as *.go or cmd/**/*_test.go; relative to path"},` +
		`"depth":{"type":"integer","minimum":1,"description":"How deep to go"},` +
		`"all":{"type":"boolean","description":"Also list what .gitignore leaves out"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":5000,"description":"How many entries; 500 if it is missing"}},` +
		`"additionalProperties":false}`),
}

type listArgs struct {
	Path  string `json:"path"`
	Glob  string `json:"glob"`
	Depth int    `json:"depth"`
	All   bool   `json:"all"`
	Limit int    `json:"limit"`
}

func (a *listArgs) check() error {
	if a.Limit < 0 || a.Limit > maxEntries || a.Depth < 0 {
		return fault.Newf(fault.Invalid, `"limit" is 1 to %d and "depth" at least 1.`, maxEntries)
	}
	a.Limit = cmp.Or(a.Limit, defaultEntries)
	a.Path = cmp.Or(a.Path, ".")
	return nil
}

func (d *directory) listEffect(a listArgs) (tool.Effect, error) {
	e := tool.Effect{Kind: assistant.KindRead, Summary: strings.TrimSpace("List " + a.Path + " " + a.Glob)}
	if err := a.check(); err != nil {
		return e, err
	}
	if _, err := filter(a.Glob); err != nil {
		return e, err
	}
	_, err := d.locate(a.Path)
	return e, err
}

func (d *directory) list(ctx context.Context, a listArgs) (tool.Result, error) {
	if err := a.check(); err != nil {
		return tool.Result{}, err
	}
	fits, err := filter(a.Glob)
	if err != nil {
		return tool.Result{}, err
	}
	start, err := d.folder(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	var out strings.Builder
	count := 0
	complete, err := d.walk(ctx, start, a.All, func(p string, e fs.DirEntry) error {
		below := under(p, start)
		deepest := a.Depth > 0 && strings.Count(below, "/")+1 >= a.Depth
		if e.IsDir() && !deepest {
			return nil
		}
		if fits(below) {
			if count == a.Limit || out.Len()+len(p) > maxOutput {
				return errEnough
			}
			count++
			out.WriteString(p)
			if e.IsDir() {
				out.WriteByte('/')
			}
			out.WriteByte('\n')
		}
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return tool.Result{}, err
	}
	switch {
	case !complete:
		fmt.Fprintf(&out, "[there are more; only the first %d are shown. Use path, glob or depth to narrow it down]\n", count)
	case count == 0:
		out.WriteString("[no file fits]\n")
	}
	return tool.Result{Content: out.String(), Note: fmt.Sprintf("%d files", count)}, nil
}

// folder locates an existing folder.
func (d *directory) folder(p string) (string, error) {
	rel, err := d.locate(p)
	if err != nil {
		return "", err
	}
	info, err := d.root.Stat(rel)
	if err != nil {
		return "", classify(err, rel)
	}
	if !info.IsDir() {
		return "", fault.Newf(fault.Invalid, "%s is not a folder.", rel)
	}
	return rel, nil
}

// under returns p relative to the folder it is in.
func under(p, folder string) string {
	if folder == "." {
		return p
	}
	return strings.TrimPrefix(p, folder+"/")
}
