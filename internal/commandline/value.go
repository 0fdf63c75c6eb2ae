package commandline

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value is a field that a flag or an argument sets. It implements pflag.Value.
type value struct {
	target      reflect.Value
	enum        []string
	placeholder string
	whole       bool // commas do not separate
	set         bool
}

func newValue(field reflect.StructField, target reflect.Value) *value {
	v := &value{target: target, whole: field.Tag.Get("sep") == "none" || has(field, "arg"), placeholder: field.Tag.Get("placeholder")}
	if enum, ok := field.Tag.Lookup("enum"); ok {
		v.enum = strings.Split(enum, ",")
	}
	if text := field.Tag.Get("default"); text != "" {
		if err := v.Set(text); err != nil {
			panic(fmt.Sprintf("the default of %s %v", field.Name, err))
		}
		v.set = false
	}
	return v
}

// Set implements pflag.Value. The first one replaces a default; further ones are
// added to a slice.
func (v *value) Set(text string) error {
	if v.enum != nil && !slices.Contains(v.enum, text) {
		return fmt.Errorf("must be one of %s", strings.Join(v.completions(), ", "))
	}
	if v.target.Kind() != reflect.Slice {
		return assign(v.target, text)
	}
	if !v.set {
		v.target.SetZero()
	}
	v.set = true
	parts := []string{text}
	if !v.whole {
		parts = strings.Split(text, ",")
	}
	for _, part := range parts {
		element := reflect.New(v.target.Type().Elem()).Elem()
		if err := assign(element, part); err != nil {
			return err
		}
		v.target.Set(reflect.Append(v.target, element))
	}
	return nil
}

func assign(target reflect.Value, text string) (err error) {
	kind := ""
	switch v := target.Addr().Interface().(type) {
	case *string:
		*v = text
	case *int:
		kind = "a whole number"
		*v, err = strconv.Atoi(text)
	case *float64:
		kind = "a number"
		*v, err = strconv.ParseFloat(text, 64)
	case *time.Duration:
		kind = "a time such as 90s or 5m"
		*v, err = time.ParseDuration(text)
	case *bool:
		kind = "true or false"
		*v, err = strconv.ParseBool(text)
	default:
		panic(fmt.Sprintf("a field of type %T can be no flag", v))
	}
	if err != nil {
		return fmt.Errorf("must be %s", kind)
	}
	return nil
}

// String implements pflag.Value.
func (v *value) String() string {
	if !v.target.IsValid() || v.target.IsZero() {
		return ""
	}
	if v.target.Kind() != reflect.Slice {
		return fmt.Sprint(v.target.Interface())
	}
	parts := make([]string, v.target.Len())
	for i := range parts {
		parts[i] = fmt.Sprint(v.target.Index(i).Interface())
	}
	return strings.Join(parts, ",")
}

// Type implements pflag.Value: the word for the value in a help text.
func (v *value) Type() string {
	switch {
	case v.target.Kind() == reflect.Bool:
		return "bool"
	case v.placeholder != "":
		return v.placeholder
	case v.String() != "":
		return v.String()
	case v.target.Kind() != reflect.String && v.target.Kind() != reflect.Slice:
		return "N"
	default:
		return "TEXT"
	}
}

// completions lists the values to choose from, without the empty one.
func (v *value) completions() []string {
	return slices.DeleteFunc(slices.Clone(v.enum), func(s string) bool { return s == "" })
}
