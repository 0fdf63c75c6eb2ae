// Package files has the tools that read and change the files of one worktree:
// read_file, write_file, edit_file, list_files and search.
//
// All access goes through an os.Root, so that no path, symbolic link or
// directory that is swapped leads out. What is inside a .git directory is neither
// read nor written: it belongs to git, and a hook written there would run.
package files

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	"remote-agent/internal/tool"
)

// The names of the tools.
const (
	NameRead   = "read_file"
	NameWrite  = "write_file"
	NameEdit   = "edit_file"
	NameList   = "list_files"
	NameSearch = "search"
)

const (
	maxFile    = 4 << 20  // the largest file that is edited, searched or written, in bytes
	maxScan    = 64 << 20 // the largest file that is read in parts, in bytes
	maxOutput  = 64 << 10 // the longest content of a result, in bytes
	maxLine    = 2000     // the longest line that read_file shows, in bytes
	maxMatch   = 400      // the longest line that search shows, in bytes
	maxEntries = 5000     // the most entries of a list
	maxMatches = 1000     // the most matches of a search
	maxVisited = 200_000  // the most files and folders that one walk looks at
	maxPattern = 1000     // the longest glob or regular expression, in bytes
	sniffed    = 8000     // how many bytes at the start decide whether a file is text
)

// Options says how the tools work. The zero value is usable.
type Options struct {
	// Dir is the absolute path of the root as the model knows it: an absolute
	// path inside it is accepted. Empty means the name of the root.
	Dir string

	// Ripgrep is the path of the program rg. Empty means that search uses its own
	// code, which gives the same output.
	Ripgrep string
}

// New returns the tools for the directory of root, which the caller closes after
// the last call. Reading has assistant.KindRead and changing
// assistant.KindWrite; the rule of a change is its path. Calls may run at the
// same time: changes are made one after the other.
func New(root *os.Root, opts Options) []tool.Tool {
	d := &directory{root: root, rg: opts.Ripgrep}
	for _, p := range []string{opts.Dir, root.Name()} {
		if !filepath.IsAbs(p) {
			continue
		}
		d.dir = cmp.Or(d.dir, filepath.Clean(p))
		d.aliases = append(d.aliases, filepath.Clean(p))
		if real, err := filepath.EvalSymlinks(p); err == nil {
			d.aliases = append(d.aliases, real)
		}
	}
	return []tool.Tool{
		op[readArgs]{d, readSpec, (*directory).readEffect, (*directory).read},
		op[writeArgs]{d, writeSpec, (*directory).writeEffect, (*directory).write},
		op[editArgs]{d, editSpec, (*directory).editEffect, (*directory).edit},
		op[listArgs]{d, listSpec, (*directory).listEffect, (*directory).list},
		op[searchArgs]{d, searchSpec, (*directory).searchEffect, (*directory).search},
	}
}

// directory is what the tools share.
type directory struct {
	root    *os.Root
	dir     string   // absolute path, empty if not known
	aliases []string // absolute paths of the root
	rg      string

	changing sync.Mutex // held from reading a file to replacing it
}

// op is one tool: a specification and two functions on the directory.
type op[A any] struct {
	d      *directory
	spec   messages.ToolSpec
	effect func(*directory, A) (tool.Effect, error)
	run    func(*directory, context.Context, A) (tool.Result, error)
}

// Spec implements tool.Tool.
func (o op[A]) Spec() messages.ToolSpec { return o.spec }

// Effect implements tool.Tool.
func (o op[A]) Effect(_ context.Context, raw json.RawMessage) (tool.Effect, error) {
	var args A
	if err := tool.Decode(raw, &args); err != nil {
		return tool.Effect{Kind: assistant.KindOther, Summary: o.spec.Name}, err
	}
	return o.effect(o.d, args)
}

// Run implements tool.Tool.
func (o op[A]) Run(ctx context.Context, raw json.RawMessage) (tool.Result, error) {
	var args A
	if err := tool.Decode(raw, &args); err != nil {
		return tool.Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	return o.run(o.d, ctx, args)
}
