package profile

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
)

// MaxFile is the longest YAML that is read, in bytes; MaxProfiles is how many
// profiles it may hold.
const (
	MaxFile     = 32 << 20
	MaxProfiles = 1000
	maxNodes    = 200_000
)

// Texts is a list of texts. A single text in YAML is a list of one.
type Texts []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *Texts) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.ShortTag() != "!!null" {
		var one string
		if err := node.Decode(&one); err != nil {
			return err
		}
		*t = Texts{one}
		return nil
	}
	var list []string
	if err := node.Decode(&list); err != nil {
		return err
	}
	*t = list
	return nil
}

// Image is a picture; its form in YAML and JSON is base64.
type Image []byte

// MarshalYAML implements yaml.Marshaler.
func (i Image) MarshalYAML() (any, error) {
	return base64.StdEncoding.EncodeToString(i), nil
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (i *Image) UnmarshalYAML(node *yaml.Node) error {
	var text string
	if err := node.Decode(&text); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return fmt.Errorf("line %d: avatar_image is not base64", node.Line)
	}
	*i = raw
	return nil
}

// Parse reads the profiles of a YAML text, one in each document. They have the
// defaults where the text says nothing, and are not checked yet. Unknown and
// repeated fields, anchors and aliases, and texts of no profile are a
// fault.Invalid that names the lines.
func Parse(text []byte) ([]Profile, error) {
	switch {
	case len(text) > MaxFile:
		return nil, fault.Newf(fault.Invalid, "The file has %d bytes; the limit is %d.", len(text), MaxFile)
	case !utf8.Valid(text):
		return nil, fault.New(fault.Invalid, "The file is not UTF-8; save it as UTF-8.")
	}
	if err := refuseAliases(text); err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var list []Profile
	for {
		p := New("")
		err := decode(decoder, &p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, readable(err)
		}
		if list = append(list, p.Prepare()); len(list) > MaxProfiles {
			return nil, fault.Newf(fault.Invalid, "The file has more than %d profiles; split it.", MaxProfiles)
		}
	}
	if len(list) == 0 {
		return nil, fault.New(fault.Invalid, "The file contains no profile; it needs at least a line like `name: reviewer`.")
	}
	return list, nil
}

// decode decodes a document. The library panics on some texts that it cannot
// read; that is an error like any other.
func decode(decoder *yaml.Decoder, into any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: %v", p)
		}
	}()
	return decoder.Decode(into)
}

// refuseAliases reads the text once without following anything in it. A profile
// needs no aliases, and with them a short text can be a huge one.
func refuseAliases(text []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	left := maxNodes
	for {
		var document yaml.Node
		err := decode(decoder, &document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return readable(err)
		}
		if err := plain(&document, &left); err != nil {
			return err
		}
	}
}

func plain(node *yaml.Node, left *int) error {
	if *left--; *left < 0 {
		return fault.New(fault.Invalid, "The file has too many values; split it.")
	}
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return fault.Newf(fault.Invalid, "line %d: anchors and aliases (& and *) are not supported; write the value out. Quote text that starts with & or *.", node.Line)
	}
	for _, child := range node.Content {
		if err := plain(child, left); err != nil {
			return err
		}
	}
	return nil
}

var (
	unknownField = pattern.Lazy(`field (\S+) not found in type \S+`)
	wrongType    = pattern.Lazy("cannot unmarshal !!(\\w+)( `.*`)? into (\\S+)")
)

// readable is an error of the library in words for people.
func readable(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if typed, ok := errors.AsType[*yaml.TypeError](err); ok {
		text = strings.Join(typed.Errors, "\n")
	}
	text = unknownField.ReplaceAllStringFunc(text, func(match string) string {
		field := unknownField.FindStringSubmatch(match)[1]
		said := fmt.Sprintf("there is no field %q", short(field))
		if near, ok := command.Nearest(field, fields()); ok {
			return said + "; did you mean " + near + "?"
		}
		return said
	})
	text = wrongType.ReplaceAllStringFunc(text, func(match string) string {
		parts := wrongType.FindStringSubmatch(match)
		return fmt.Sprintf("%s%s instead of %s", kinds[parts[1]], parts[2], wanted(parts[3]))
	})
	return &fault.Error{Kind: fault.Invalid, Public: strings.ReplaceAll(text, "!!", ""), Err: err}
}

var kinds = map[string]string{
	"str": "a text", "int": "a number", "float": "a fraction", "bool": "true or false", "seq": "a list", "map": "a group of fields", "null": "nothing",
}

// wanted names a type of Go as people who write YAML know it.
func wanted(goType string) string {
	switch {
	case strings.HasPrefix(goType, "int"):
		return "a whole number"
	case goType == "bool":
		return "true or false"
	case goType == "string", strings.HasSuffix(goType, "Mode"):
		return "a text"
	case strings.HasPrefix(goType, "[]"):
		return "a list of texts"
	}
	return "a group of fields"
}

// fields are the names of all fields that YAML may have, of profiles and what is
// in them.
func fields() []string {
	var names []string
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		for field := range t.Fields() {
			tag, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			if tag != "" && tag != "-" {
				names = append(names, tag)
				add(field.Type)
			}
		}
	}
	add(reflect.TypeFor[Profile]())
	slices.Sort(names)
	return slices.Compact(names)
}

// Format writes profiles as YAML, a document each, with the fields in a fixed
// order. Parse gives back the same profiles.
func Format(list ...Profile) ([]byte, error) {
	if len(list) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	for i, p := range list {
		document, err := formatOne(p)
		if err != nil {
			return nil, fault.Wrap(err, fault.Internal, "write a profile")
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(document)
	}
	return out.Bytes(), nil
}

// formatOne writes a profile for people to read. The library writes some texts
// that begin with blanks so that nobody can read them again: a profile with such
// a text is written with quotes and brackets, as in JSON.
func formatOne(p Profile) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(p), encoder.Close()); err != nil {
		return nil, err
	}
	var again Profile
	if decode(yaml.NewDecoder(bytes.NewReader(out.Bytes())), &again) == nil && reflect.DeepEqual(written(p), written(again)) {
		return out.Bytes(), nil
	}
	encoded, err := json.MarshalIndent(written(p), "", "  ")
	return escape(encoded), err
}

// escape writes what YAML does not take as it is, and JSON does, as YAML can
// read it in a quoted text.
func escape(encoded []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(encoded) {
		switch {
		case r < unicode.MaxASCII || unicode.IsPrint(r):
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, `\U%08x`, r)
		}
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// written returns what is written of a profile, by its names.
func written(p Profile) map[string]any {
	encoded, err := json.Marshal(p)
	members := make(map[string]any)
	if err != nil || json.Unmarshal(encoded, &members) != nil {
		return nil // a struct of texts and numbers can always be encoded
	}
	for name, value := range members {
		list, isList := value.([]any)
		inner, isMap := value.(map[string]any)
		if value == nil || value == "" || isList && len(list) == 0 || isMap && len(inner) == 0 || slices.Contains([]string{"id", "version", "created_at", "updated_at"}, name) {
			delete(members, name)
		}
	}
	return members
}
