package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"remote-agent/internal/tool"
)

const (
	maxSchema = 32 << 10 // bytes
	maxDepth  = 32       // of a schema, with what it refers to
	maxNodes  = 20_000   // that are looked at
)

// checkSchema returns the schema of a tool in a form that every provider takes:
// an object, of bounded size and depth, that refers only to itself and not in a
// circle, with arguments and without alternatives at its top. The same schema always
// gives the same bytes. renamed has the names of arguments that the server knows under
// others.
func checkSchema(schema any) (fit json.RawMessage, renamed map[string]string, err error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, nil, errors.New("its schema cannot be read")
	}
	if len(raw) > maxSchema {
		return nil, nil, fmt.Errorf("its schema has %d bytes; at most %d are taken", len(raw), maxSchema)
	}
	raw = []byte(tool.Visible(string(raw)))
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, nil, errors.New("its schema is not an object")
	}
	if root == nil { // there is none, or null
		root = map[string]any{}
	}
	switch root["type"] {
	case nil:
		root["type"] = "object"
	case "object":
	default:
		return nil, nil, errors.New("its arguments are not an object")
	}
	properties, ok := root["properties"].(map[string]any)
	if !ok {
		properties = map[string]any{}
		root["properties"] = properties
	}
	w := &schemaWalk{root: root, open: make(map[string]bool)}
	if err := w.visit(root, 0); err != nil {
		return nil, nil, err
	}
	w.flatten(properties)
	renamed = rename(root, properties)
	fit, err = json.Marshal(root)
	return fit, renamed, err
}

type schemaWalk struct {
	root  map[string]any
	open  map[string]bool // references that are being followed
	nodes int
}

func (w *schemaWalk) visit(node any, depth int) error {
	if w.nodes++; w.nodes > maxNodes {
		return errors.New("its schema is too large, with what it refers to")
	}
	if depth > maxDepth {
		return errors.New("its schema is too deep")
	}
	switch node := node.(type) {
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok {
			if err := w.follow(ref, depth); err != nil {
				return err
			}
		}
		if _, ok := node["items"]; !ok && isList(node["type"]) {
			node["items"] = map[string]any{} // OpenAI's API refuses a list that does not say of what
		}
		for _, child := range node {
			if err := w.visit(child, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, child := range node {
			if err := w.visit(child, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *schemaWalk) follow(ref string, depth int) error {
	if w.open[ref] {
		return errors.New("its schema refers to itself in a circle")
	}
	target, err := w.resolve(ref)
	if err != nil {
		return err
	}
	w.open[ref] = true
	defer delete(w.open, ref)
	return w.visit(target, depth+1)
}

// resolve finds what a JSON pointer within the schema means.
func (w *schemaWalk) resolve(ref string) (any, error) {
	unknown := fmt.Errorf("its schema refers to %q, which is not in it", tool.Line(ref, 80))
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, unknown
	}
	var at any = w.root
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch node := at.(type) {
		case map[string]any:
			if at, ok = node[part]; !ok {
				return nil, unknown
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(node) {
				return nil, unknown
			}
			at = node[i]
		default:
			return nil, unknown
		}
	}
	return at, nil
}
