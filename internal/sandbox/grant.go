package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"remote-agent/internal/fault"
)

// checkGrant refuses a path that no program may be given: the whole file system,
// and what is hidden, unless it lies in an area from which grants are made. It
// looks at where the path really leads, so that a link grants nothing.
func checkGrant(p string, write bool, cfg Config) error {
	if !filepath.IsAbs(p) {
		return fault.Newf(fault.Invalid, "The path %q that a command may use is not absolute.", p)
	}
	resolved, err := filepath.EvalSymlinks(p)
	if err != nil {
		return &fault.Error{Kind: fault.NotFound, Public: "A folder that the command needs no longer exists.", Err: err}
	}
	if resolved == "/" {
		return fault.New(fault.Invalid, "A command cannot be given the whole file system.")
	}
	secret := innermost(cfg.Hidden, resolved)
	if secret == "" {
		return nil
	}
	area, ok := areaOf(p, resolved, cfg.Grantable)
	if secret == resolved || !ok || !within(secret, area.Dir) {
		return fault.Newf(fault.Forbidden, "Commands cannot access %q: it is in %q, which is hidden from all commands. Move it elsewhere.", p, secret)
	}
	if write && !area.Write {
		return fault.Newf(fault.Forbidden, "Commands cannot change %q: everything in %q is read-only.", p, area.Dir)
	}
	return nil
}

// innermost returns the deepest of some paths that p is or lies in, where it
// really is, or nothing.
func innermost(paths []string, p string) string {
	deepest := ""
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil && within(real, p) && len(real) > len(deepest) {
			deepest = real
		}
	}
	return deepest
}

// areaOf returns the innermost area that has p below it, as it really is. A path
// that gets there through a link is in none.
func areaOf(p, resolved string, areas []Area) (Area, bool) {
	var found Area
	for _, a := range areas {
		real, err := filepath.EvalSymlinks(a.Dir)
		if err != nil || real == resolved || !within(real, resolved) || len(real) <= len(found.Dir) {
			continue
		}
		rest, err := filepath.Rel(real, resolved)
		if err != nil || filepath.Clean(p) != resolved && filepath.Clean(p) != filepath.Join(a.Dir, rest) {
			continue
		}
		found = Area{Dir: real, Write: a.Write}
	}
	return found, found.Dir != ""
}

// fixedGrant refuses a path that every program would be given and that lies in a
// hidden one. One that contains a hidden one is fine: that is covered.
func fixedGrant(p string, hidden []string) error {
	resolved, err := filepath.EvalSymlinks(p)
	if err != nil {
		return nil //nolint:nilerr // left out as long as it is missing
	}
	if secret := innermost(hidden, resolved); secret != "" {
		return fault.Newf(fault.Invalid, "Assistants' programs cannot read %q (TOOL_READ_PATHS): it is in %q, which is hidden from them. Move it elsewhere, or remove it from the list.", p, secret)
	}
	return nil
}

// checkSealed refuses what lies in nothing that the program may change.
func checkSealed(p string, writable []string) error {
	if !filepath.IsAbs(p) || !slices.ContainsFunc(writable, func(dir string) bool { return dir != p && within(dir, p) }) {
		return fault.Newf(fault.Invalid, "The path %q cannot be protected: it is in nothing that the command may change.", p)
	}
	return nil
}

// intact refuses to protect what is not there any more, or is a link by now.
func intact(sealed []string) error {
	for _, p := range sealed {
		info, err := os.Lstat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && !info.IsDir() && !info.Mode().IsRegular():
			return fault.Newf(fault.Conflict, "%q was removed or replaced. It is restored before the next message; use /retry.", filepath.Base(p))
		case err != nil:
			return fault.Wrap(err, fault.Internal, "looking at a protected file")
		}
	}
	return nil
}
