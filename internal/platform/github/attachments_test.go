package github_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// What somebody drops into a comment is an attachment, and is fetched with the bot's
// token. Nothing else is.
func TestDroppedFilesAreFetched(t *testing.T) {
	w := newWorld(t)
	w.run(t)
	address := w.server.Drop("image/png", []byte("a picture"))
	w.server.Person("ann").In(repo).OpenIssue("Look", "@remote-agent see ![shot]("+address+") and <img src=\""+address+"\">, not "+
		"![x](https://evil.example/user-attachments/assets/1) <!-- "+w.server.Drop("image/png", []byte("hidden"))+" -->")
	if err := w.sink.Wait(t.Context(), func() bool { return len(w.sink.Events()) > 0 }); err != nil {
		t.Fatal(err)
	}
	in := w.sink.Events()[0]
	if len(in.Attachments) != 1 || in.Attachments[0].Name != "image-1.png" {
		t.Fatalf("it has %+v", in.Attachments)
	}
	body, err := w.Fetch(t.Context(), in.Attachments[0])
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close() //nolint:errcheck // only read
	if got, err := io.ReadAll(body); string(got) != "a picture" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := w.Fetch(t.Context(), messages.Attachment{Source: inKey + " " + address + "0"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// The bot asks nobody but GitHub, whatever an address or a redirect says.
func TestFilesElsewhereAreNotFetched(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(elsewhere.Close)
	w := newWorld(t)
	w.run(t)
	redirected := w.server.Drop("image/png", []byte("y"))
	w.server.Redirect(redirected, elsewhere.URL)
	for _, source := range []string{
		inKey + " " + elsewhere.URL + "/user-attachments/assets/1",
		inKey + " " + w.server.URL() + "/repos/acme/web",
		inKey + " " + w.server.URL() + "/user-attachments/assets/../../repos/acme/web", // the token reads more than a stranger does
		inKey + " " + w.server.URL() + "/user-attachments/files/%2e%2e/%2E./repos/acme/web",
		inKey + " " + redirected,
		inKey, "",
	} {
		if _, err := w.Fetch(t.Context(), messages.Attachment{Source: source}); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%q: %v", source, err)
		}
	}
	if asked > 0 {
		t.Errorf("the other server was asked %d times", asked)
	}
}
