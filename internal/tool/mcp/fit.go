package mcp

import (
	"maps"
	"reflect"
	"slices"

	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
)

// argument is what Anthropic's API takes as the name of an argument.
var argument = pattern.Lazy(`^[a-zA-Z0-9_.-]{1,64}$`)

// flatten takes alternatives away from the top of a schema that was visited, where APIs
// refuse them. The arguments of all of them stay: which go together is known to the server.
func (w *schemaWalk) flatten(properties map[string]any) {
	found := make(map[string][]any)
	w.collect(w.root, found)
	for name, forms := range found {
		if _, known := properties[name]; known {
			continue
		}
		properties[name] = forms[0]
		if len(forms) > 1 {
			properties[name] = map[string]any{"anyOf": forms}
		}
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf", "not", "enum"} {
		delete(w.root, word)
	}
}

// collect finds the arguments of the alternatives of a node, each with its forms.
func (w *schemaWalk) collect(node map[string]any, found map[string][]any) {
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		branches, _ := node[word].([]any)
		for _, b := range branches {
			branch, _ := b.(map[string]any)
			if ref, ok := branch["$ref"].(string); ok {
				target, _ := w.resolve(ref)
				branch, _ = target.(map[string]any)
			}
			properties, _ := branch["properties"].(map[string]any)
			for name, form := range properties {
				if !slices.ContainsFunc(found[name], func(other any) bool { return reflect.DeepEqual(other, form) }) {
					found[name] = append(found[name], form)
				}
			}
			w.collect(branch, found)
		}
	}
}

// rename gives arguments names that APIs take, where they have others, and returns those by
// the new ones.
func rename(root, properties map[string]any) (renamed map[string]string) {
	for _, known := range slices.Sorted(maps.Keys(properties)) {
		if argument.MatchString(known) {
			continue
		}
		name := messages.SafeName(known)
		if _, taken := properties[name]; taken {
			name = another(name, known)
		}
		if renamed == nil {
			renamed = make(map[string]string)
		}
		renamed[name] = known
		properties[name] = properties[known]
		delete(properties, known)
		required, _ := root["required"].([]any)
		if i := slices.Index(required, any(known)); i >= 0 {
			required[i] = name
		}
	}
	return renamed
}

// isList reports whether a schema's type is a list, or may be one.
func isList(kind any) bool {
	kinds, several := kind.([]any)
	return kind == "array" || several && slices.Contains(kinds, any("array"))
}
