package store

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// bodies are some as platforms send them, and what is none.
var bodies = []string{
	`{"update_id":7,"message":{"message_id":8,"from":{"id":42,"is_bot":false,"first_name":"Ann","language_code":"en"},"chat":{"id":42,"first_name":"Ann","type":"private"},"date":1795407486,"text":"Does it compile?"}}`,
	`{"api_app_id":"A1","event":{"channel":"D1","channel_type":"im","text":"Does it compile?","ts":"1795407775.059684","type":"message","user":"U1"},"event_id":"Ev1","type":"event_callback"}`,
	"garbage", "\x00\xff", "\x01", "\x01\x01\x01", "\x01" + `{"update_id":7}`,
}

func TestABodyComesBackAsItCame(t *testing.T) {
	t.Parallel()
	for i, body := range bodies {
		stored, ok := packBody([]byte(body)).([]byte)
		if got := unpackBody(stored); !ok || string(got) != body {
			t.Errorf("%q came back as %q", body, got)
		}
		if i < 2 && len(stored) > len(body)*6/10 {
			t.Errorf("%q is stored in %d bytes of %d", body, len(stored), len(body))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "body")
		if rapid.Bool().Draw(t, "begins as a compressed one does") {
			body[0] = packedBody
		}
		if got := unpackBody(packBody(body).([]byte)); !bytes.Equal(got, body) {
			t.Fatalf("%q came back as %q", body, got)
		}
	})
	if packBody(nil) != nil || unpackBody(nil) != nil {
		t.Error("no body became one")
	}
}

// TestABodyStoredEarlierIsRead has bytes that a version has written: it fails if the
// dictionary was changed.
func TestABodyStoredEarlierIsRead(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]string{
		`{"update_id":7}`: `{"update_id":7}`, // not compressed
		"\x01\xd3\x01\x15\x00\x05\x007b\x82\x04\x0086\x83\x04\x0442Y8N\xc6\x03\bAnn\x92k\x04\x0442:\xc5\x03\t9:\xe9\x03\x9d\x13\x1c954074865bHDoes it compile?\"}}":                   bodies[0],
		"\x01\xb9\x01>9\x02\x001\x11g\f\":{\"\x15R\b\"D1Z\x17\x01Xtext\":\"Does it compile?\x19\xf9895407775.059684\x19\x8aF\b\x01\x0019\t\x1cid\":\"Ev1\x19/\x01\xb9\x11\x00\fck\"}": bodies[1],
	} {
		if got := unpackBody([]byte(stored)); string(got) != want {
			t.Errorf("%q is read as %q", stored, got)
		}
	}
}

// FuzzUnpackBody reads what a damaged row may have.
func FuzzUnpackBody(f *testing.F) {
	for _, body := range bodies {
		f.Add([]byte(body))
		stored, _ := packBody([]byte(body)).([]byte)
		f.Add(stored)
	}
	f.Add([]byte("\x01\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		if got := unpackBody(stored); len(stored) > 0 && stored[0] != packedBody && !bytes.Equal(got, stored) {
			t.Errorf("%q, which is not compressed, is read as %q", stored, got)
		}
	})
}
