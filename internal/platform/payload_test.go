package platform_test

import (
	"testing"

	"remote-agent/internal/platform"
)

// TestLenient: a field of another type is empty, and what is no object is no payload.
func TestLenient(t *testing.T) {
	t.Parallel()
	for body, ok := range map[string]bool{
		`{"name":"a"}`: true, `{"name":"a","number":"x"}`: true, `{"number":{},"name":"a"}`: true,
		`7`: false, `"a"`: false, `["a"]`: false, `{"name":"a"`: false, ``: false,
	} {
		var out struct {
			Name   string `json:"name"`
			Number int    `json:"number"`
		}
		if err := platform.Lenient([]byte(" \t\r\n"+body), &out); (err == nil) != ok || ok && out.Name != "a" {
			t.Errorf("%s: %+v, %v", body, out, err)
		}
	}
}
