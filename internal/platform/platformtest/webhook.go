package platformtest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"remote-agent/internal/platform"
)

// mostRead is more than any platform sends at once.
const mostRead = 64 << 20

// delivered is a request of the platform.
type delivered struct {
	path   string
	header http.Header
	body   []byte
}

// refusesStrangers sends once more what the platform sent, as somebody would who cannot
// prove to be the platform, and then without an end.
func refusesStrangers(t *testing.T, r Rig) {
	hook, ok := r.Adapter.(platform.WebhookReceiver)
	r.needs(t, ok && r.Mount != nil && r.Deliver != nil, "webhook")
	var last atomic.Pointer[delivered]
	mount := r.Mount
	r.Mount = func(h http.Handler) {
		mount(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Error(err)
			}
			last.Store(&delivered{req.URL.Path, req.Header.Clone(), body})
			req.Body = io.NopCloser(bytes.NewReader(body))
			h.ServeHTTP(w, req)
		}))
	}
	sink := &Sink{}
	r.start(t, sink)
	sink.await(t, "accepting the event", sink.has(r.Deliver("hello")))
	got, strangers := last.Load(), &Sink{}
	if got == nil {
		t.Fatal("the event did not come in over the webhook that the rig mounts")
	}
	handler := hook.Webhook(strangers)
	bare := http.Header{"Content-Type": got.header["Content-Type"]}
	endless := &flood{}
	unauthorized := []int{http.StatusUnauthorized, http.StatusForbidden} // no other: who it is comes before what it says
	for name, try := range map[string]struct {
		req  *http.Request
		want []int
	}{
		"without credentials":  {got.again(bare, bytes.NewReader(got.body)), unauthorized},
		"with forged ones":     {got.again(forged(got.header), bytes.NewReader(got.body)), unauthorized},
		"with a body too long": {got.again(got.header, endless), append(unauthorized, http.StatusRequestEntityTooLarge)},
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, try.req)
		if !slices.Contains(try.want, answer.Code) {
			t.Errorf("a delivery %s is answered with %d, want one of %v", name, answer.Code, try.want)
		}
	}
	if strangers.Calls() > 0 || len(strangers.Kept()) > 0 {
		t.Errorf("accepted %+v and kept %+v of strangers", strangers.Events(), strangers.Kept())
	}
	if endless.read > mostRead {
		t.Errorf("read %d bytes of a body without an end", endless.read)
	}
}

// forged returns h with the last character of each value changed to one that is a digit in
// whatever it is written in.
func forged(h http.Header) http.Header {
	h = h.Clone()
	for name, values := range h {
		value, last := values[0], max(0, len(values[0])-1)
		switch {
		case name == "Content-Type":
		case value[last:] == "0":
			h.Set(name, value[:last]+"1")
		default:
			h.Set(name, value[:last]+"0")
		}
	}
	return h
}

func (d *delivered) again(header http.Header, body io.Reader) *http.Request {
	req := httptest.NewRequest(http.MethodPost, d.path, body)
	req.Header = header.Clone()
	return req
}

// flood is a body that ends long after nobody should read on.
type flood struct{ read int }

// Read implements io.Reader.
func (f *flood) Read(p []byte) (int, error) {
	if f.read > 2*mostRead {
		return 0, io.EOF
	}
	f.read += len(p)
	return len(p), nil
}
