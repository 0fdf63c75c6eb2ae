package config

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"remote-agent/internal/option"
	"remote-agent/internal/pattern"
)

// Edit returns the text of an .env file in which the options of set have their new
// values and those with an empty value are not set any more. All else stays as it is,
// byte for byte: comments, other variables, the order, the ends of lines. An option that
// the file has as a comment gets its line below that one; others get theirs at the end.
//
// Other names of the same option are taken out where they would contradict. What Load
// reads afterwards is exactly what was set; a file or a value for which that cannot be
// had is an error, one line without any secret.
func Edit(text []byte, set map[string]string, sections ...option.Section) ([]byte, error) {
	changes := make(map[string]string) // "" takes out
	for _, o := range Options(sections...) {
		value, ok := set[o.Name]
		if !ok {
			continue
		}
		if value != strings.TrimSpace(value) {
			return nil, fmt.Errorf("%s begins or ends with a space: take it away", o.Name)
		}
		changes[o.Name] = value
		if o.Secret {
			changes[o.Name+option.FileSuffix] = ""
		}
		for _, a := range o.Aliases {
			changes[a.Name] = ""
		}
	}
	for _, name := range sortedKeys(set) {
		if _, known := changes[name]; !known {
			return nil, fmt.Errorf("%s is not an option", name)
		}
	}
	return editEnv(text, changes)
}

// bom is what some editors begin a file with.
var bom = []byte("\xef\xbb\xbf")

// editEnv does Edit for variables.
func editEnv(text []byte, changes map[string]string) ([]byte, error) {
	before, err := parseEnv(bytes.TrimPrefix(text, bom))
	if err != nil {
		return nil, fmt.Errorf("line %d is not NAME=value: fix it, or start the line with # (close the quotes around a value)", malformedLine(text))
	}
	forms := make(map[string]string)
	for _, name := range sortedKeys(changes) {
		if changes[name] == "" {
			continue
		}
		form, ok := quoted(changes[name])
		if !ok {
			return nil, fmt.Errorf("the value of %s has quotes or characters that this file cannot hold", name)
		}
		forms[name] = form
	}
	out := place(statementsOf(text), changes, forms)
	after, err := parseEnv(bytes.TrimPrefix(out, bom))
	want := maps.Clone(before)
	if want == nil {
		want = make(map[string]string)
	}
	for name, value := range changes {
		if want[name] = value; value == "" {
			delete(want, name)
		}
	}
	if err != nil || len(out) > maxFile || !maps.Equal(after, want) {
		return nil, fmt.Errorf("the file is written in a way that cannot be changed safely (%s): change it by hand", strings.Join(sortedKeys(forms), ", "))
	}
	return out, nil
}

// statement is a part of the file: the lines of one variable, or a line without any.
type statement struct {
	text  []byte
	names []string // of the variables in it
}

// statementsOf takes a file that can be read apart.
func statementsOf(text []byte) []statement {
	var all []statement
	lines := bytes.SplitAfter(text, []byte("\n"))
	start := 0
	for end := range lines {
		chunk := bytes.Join(lines[start:end+1], nil)
		values, err := parseEnv(bytes.TrimPrefix(chunk, bom))
		if err != nil && end-start > maxStatement {
			break // what is left can be read as a whole only, and gets new lines at its end
		}
		if err != nil {
			continue
		}
		start = end + 1
		all = append(all, statement{text: chunk, names: sortedKeys(values)})
	}
	return append(all, statement{text: bytes.Join(lines[start:], nil)})
}

// place puts the forms of values where they belong.
func place(all []statement, changes, forms map[string]string) []byte {
	last := make(map[string]int) // the statement that counts
	for i, s := range all {
		for _, name := range s.names {
			last[name] = i
		}
	}
	ending := "\n"
	if len(all) > 0 && bytes.HasSuffix(all[0].text, []byte("\r\n")) {
		ending = "\r\n"
	}
	var out bytes.Buffer
	done := make(map[string]bool)
	for i, s := range all {
		if len(s.names) == 1 {
			name := s.names[0]
			value, changed := changes[name]
			switch {
			case changed && value == "":
				continue
			case changed && last[name] == i:
				done[name] = true
				out.Write(withValue(s.text, forms[name]))
				continue
			}
		}
		out.Write(s.text)
		for _, name := range sortedKeys(forms) {
			if _, there := last[name]; !there && !done[name] && isExample(s.text, name) {
				done[name] = true
				endLine(&out, ending)
				fmt.Fprintf(&out, "%s=%s%s", name, forms[name], ending)
			}
		}
	}
	for _, name := range sortedKeys(forms) {
		if !done[name] {
			endLine(&out, ending)
			fmt.Fprintf(&out, "%s=%s%s", name, forms[name], ending)
		}
	}
	return out.Bytes()
}

func endLine(out *bytes.Buffer, ending string) {
	if out.Len() > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
		out.WriteString(ending)
	}
}

// isExample reports whether a line shows an option that is not set, as .env.example
// has them.
func isExample(line []byte, name string) bool {
	rest, ok := bytes.CutPrefix(line, []byte("#"))
	return ok && bytes.HasPrefix(bytes.TrimLeft(rest, " "), []byte(name+"="))
}

// withValue replaces the value in the text of one statement; what stands before and
// behind it stays.
func withValue(text []byte, form string) []byte {
	from := bytes.IndexAny(text, "=:") + 1
	for from < len(text) && bytes.IndexByte([]byte(" \t\v\f\r"), text[from]) >= 0 && !bytes.HasPrefix(text[from:], []byte("\r\n")) {
		from++
	}
	to := from + valueLength(text[from:])
	return slices.Concat(text[:from], []byte(form), text[to:])
}

// valueLength is how much of a text, which begins with a value, is that value.
func valueLength(text []byte) int {
	if len(text) > 0 && (text[0] == '"' || text[0] == '\'') {
		for i := 1; i < len(text); i++ {
			if text[i] == text[0] && text[i-1] != '\\' {
				return i + 1
			}
		}
		return len(text)
	}
	end := bytes.IndexAny(text, "\r\n")
	if end < 0 {
		end = len(text)
	}
	for i := end - 1; i > 0; i-- {
		if text[i] == '#' && bytes.IndexByte([]byte(" \t\v\f"), text[i-1]) >= 0 {
			end = i
			break
		}
	}
	return len(bytes.TrimRight(text[:end], " \t\v\f"))
}

// plainValue needs no quotes, here and in a shell.
var plainValue = pattern.Lazy(`^[A-Za-z0-9_./:@,+%=~^*-]+$`)

var doubleQuoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "$", `\$`)

// quoted writes a value so that it is read as it is. ok is false if there is no way.
func quoted(value string) (form string, ok bool) {
	candidates := []string{"'" + value + "'", `"` + doubleQuoted.Replace(value) + `"`, value}
	if plainValue.MatchString(value) {
		candidates = []string{value}
	}
	for _, form := range candidates {
		if strings.Contains(form, "\n") || strings.Contains(form, "\r") {
			continue // one line each: programs such as systemd read these files, too
		}
		read, err := parseEnv([]byte("X=" + form + "\nY=1\n"))
		if err == nil && len(read) == 2 && read["X"] == value && read["Y"] == "1" {
			return form, true
		}
	}
	return "", false
}
