package github_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform/github"
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

// Comments that were written before 2024 have their files at addresses of their repository. Those
// of others are not fetched: the bot's token may reach them, and whoever writes an address may not.
func TestFilesOfTheRepositoryAreFetched(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Header.Get("Authorization"), r.URL.Path)
	}))
	t.Cleanup(server.Close)
	a, err := github.New(github.Config{Token: "github_pat_0123456789abcdef", Poll: true, APIURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	for path, may := range map[string]bool{
		"/Acme/Web/assets/7/5f2c": true, "/acme/web/files/8/trace.txt": true,
		"/acme/secret/files/8/trace.txt": false, "/acme/web/issues/8": false, "/acme/web/files/../../secret/files/8/a": false, "/acme": false,
	} {
		body, err := a.Fetch(t.Context(), messages.Attachment{Source: "acme/web " + server.URL + path})
		if !may {
			if !fault.Is(err, fault.Unsupported) {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, err := io.ReadAll(body); string(got) != "Bearer github_pat_0123456789abcdef"+path || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		_ = body.Close()
	}
	list := a.Attachments("acme/web", "[trace.txt]("+server.URL+"/acme/web/files/8/trace.txt) ![x]("+server.URL+"/acme/web/assets/7/5f2c)")
	if len(list) != 2 || list[0].Name != "trace.txt" || list[1].Name != "image-2.png" {
		t.Errorf("the comment has %+v", list)
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

// A picture of a private repository is not there for an App's token. It is where the page
// shows it from that GitHub makes of a text with the picture, and that takes no token.
func TestPicturesOfPrivateRepositoriesAreFetched(t *testing.T) {
	t.Parallel()
	rendered := 0
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/private/1.png" && r.Header.Get("Authorization") == "" && r.URL.Query().Get("jwt") == "signed":
			_, _ = fmt.Fprint(w, "a picture")
		case r.URL.Path == "/markdown" && r.Method == http.MethodPost:
			rendered++
			var asked struct{ Text, Mode, Context string }
			_ = json.NewDecoder(r.Body).Decode(&asked)
			address := strings.TrimSuffix(strings.TrimPrefix(asked.Text, "![]("), ")")
			switch {
			case asked.Mode != "gfm" || asked.Context != "acme/web":
			case address == server.URL+"/user-attachments/assets/1":
				address = server.URL + "/private/1.png?at=1&amp;jwt=signed"
			case address == server.URL+"/user-attachments/assets/3":
				address = "https://elsewhere.example/3.png"
			}
			_, _ = fmt.Fprintf(w, `<p dir="auto"><a href=%[1]q><img src=%[1]q alt="" style="max-width: 100%%;"></a></p>`, address)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	a, err := github.New(github.Config{Token: "github_pat_0123456789abcdef", Poll: true, APIURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	at := "acme/web " + server.URL + "/user-attachments/"
	body, err := a.Fetch(t.Context(), messages.Attachment{Source: at + "assets/1"})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close() //nolint:errcheck // only read
	if got, err := io.ReadAll(body); string(got) != "a picture" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for name, want := range map[string]fault.Kind{"assets/2": fault.NotFound, "assets/3": fault.Unsupported, "files/1/a.pdf": fault.NotFound} {
		if _, err := a.Fetch(t.Context(), messages.Attachment{Source: at + name}); !fault.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if rendered != 3 {
		t.Errorf("%d pages were made, want one for each picture", rendered)
	}
}
