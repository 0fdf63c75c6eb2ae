package platform_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
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

// TestALargeBodyHasRoomOnce: the memory that one takes stays under twice the limit
// (platform contracts S5).
func TestALargeBodyHasRoomOnce(t *testing.T) {
	t.Parallel()
	const limit = 25 << 20
	sent := bytes.Repeat([]byte("x"), limit)
	for name, length := range map[string]int64{"declared": limit, "not declared": -1, "too little declared": 1} {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(sent))
		r.ContentLength = length
		got, status := platform.ReadBody(httptest.NewRecorder(), r, limit)
		if status != http.StatusOK || !bytes.Equal(got, sent) {
			t.Errorf("%s: %d bytes, status %d", name, len(got), status)
		}
		if cap(got) > limit+1<<20 {
			t.Errorf("%s: room for %d bytes", name, cap(got))
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(append(sent, 'x')))
	r.ContentLength = -1
	if _, status := platform.ReadBody(httptest.NewRecorder(), r, limit); status != http.StatusRequestEntityTooLarge {
		t.Errorf("one byte more: status %d", status)
	}
}
