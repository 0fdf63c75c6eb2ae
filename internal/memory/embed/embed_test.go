package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/memory/embed"
	"remote-agent/internal/memory/memorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is an embeddings API that answers with the hashes of texts.
type api struct {
	mu      sync.Mutex
	batches [][]string
	header  http.Header
	body    map[string]any
	answer  func(w http.ResponseWriter, inputs []string) // instead of the right one
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var req struct{ Input []string }
	body := map[string]any{}
	_ = json.Unmarshal(raw, &req)
	_ = json.Unmarshal(raw, &body)
	a.mu.Lock()
	a.batches = append(a.batches, req.Input)
	a.header, a.body = r.Header.Clone(), body
	answer := a.answer
	a.mu.Unlock()
	if r.URL.Path != "/v1/embeddings" || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	if answer != nil {
		answer(w, req.Input)
		return
	}
	write(w, req.Input, vectorOf)
}

// vectorOf is the right element of an answer.
func vectorOf(i int, text string) map[string]any {
	return map[string]any{"index": i, "embedding": memorytest.Vector(text)}
}

// write answers with one element for each input, in reverse order.
func write(w http.ResponseWriter, inputs []string, element func(i int, text string) map[string]any) {
	data := make([]map[string]any, 0, len(inputs))
	for i, text := range inputs {
		data = append(data, element(i, text))
	}
	slices.Reverse(data)
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
}

func (a *api) says(answer func(w http.ResponseWriter, inputs []string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

func (a *api) asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.batches)
}

func setup(t *testing.T, change ...func(*embed.Config)) (*api, *embed.Client) {
	t.Helper()
	a := &api{}
	server := httptest.NewServer(a)
	config := embed.Config{BaseURL: server.URL + "/v1/", APIKey: "sk-test", Model: "tiny"}
	for _, f := range change {
		f(&config)
	}
	c, err := embed.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		server.Close()
	})
	return a, c
}

func TestBatchesAndCache(t *testing.T) {
	t.Parallel()
	a, c := setup(t, func(c *embed.Config) { c.Batch = 3 })
	texts := []string{"one", "two", "one", " two ", "three", "four", "", "five"}
	for range 2 {
		got, err := c.Embed(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			want := memorytest.Vector(strings.TrimSpace(text))
			if text == "" {
				want = memorytest.Vector(".")
			}
			if !slices.Equal(got[i], want) {
				t.Errorf("%q got another's vector", text)
			}
		}
	}
	if fmt.Sprint(a.batches) != "[[one two three] [four . five]]" {
		t.Errorf("asked %q", a.batches)
	}
	if a.header.Get("Authorization") != "Bearer sk-test" || a.body["dimensions"] != 384.0 || a.body["model"] != "tiny" || a.body["encoding_format"] != "float" {
		t.Errorf("asked with %v %v", a.header, a.body)
	}
	if got, err := c.Embed(t.Context(), nil); len(got) != 0 || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	a, c := setup(t, func(c *embed.Config) { c.CacheSize = 2 })
	for _, text := range []string{"a1", "b1", "a1", "c1", "a1", "b1"} { // b1 was used longest ago
		if _, err := c.Embed(t.Context(), []string{text}); err != nil {
			t.Fatal(err)
		}
	}
	if n := a.asked(); n != 4 {
		t.Errorf("asked %d times, want 4: %q", n, a.batches)
	}
}

func TestAnswersThatAreWrong(t *testing.T) {
	t.Parallel()
	good := memorytest.Vector("x")
	element := func(v any) func(http.ResponseWriter, []string) {
		return func(w http.ResponseWriter, inputs []string) {
			write(w, inputs, func(i int, _ string) map[string]any { return map[string]any{"index": i, "embedding": v} })
		}
	}
	status := func(code int, header ...string) func(http.ResponseWriter, []string) {
		return func(w http.ResponseWriter, _ []string) {
			if len(header) > 0 {
				w.Header().Set(header[0], header[1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"error":{"message":"no"}}`)
		}
	}
	raw := func(text string) func(http.ResponseWriter, []string) {
		return func(w http.ResponseWriter, _ []string) { _, _ = io.WriteString(w, text) }
	}
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter, []string)
		kind   fault.Kind
	}{
		"wrong length":     {element(good[:100]), fault.Invalid},
		"zero vector":      {element(make(memory.Vector, 384)), fault.Invalid},
		"NaN":              {raw(`{"data":[{"index":0,"embedding":[NaN]}]}`), fault.Invalid},
		"too large number": {raw(`{"data":[{"index":0,"embedding":[1e99]}]}`), fault.Invalid},
		"strings":          {element("AAAA"), fault.Invalid},
		"too few":          {raw(`{"data":[]}`), fault.Invalid},
		"twice the same": {func(w http.ResponseWriter, in []string) {
			write(w, in, func(int, string) map[string]any { return map[string]any{"index": 1, "embedding": good} })
		}, fault.Invalid},
		"a wrong number": {func(w http.ResponseWriter, in []string) {
			write(w, in, func(i int, _ string) map[string]any { return map[string]any{"index": i + 7, "embedding": good} })
		}, fault.Invalid},
		"not JSON":     {raw("<html>"), fault.Invalid},
		"cut off":      {raw(`{"data":[{"ind`), fault.Invalid},
		"unauthorized": {status(401), fault.Unauthorized},
		"bad request":  {status(400), fault.Invalid},
		"no model":     {status(404), fault.NotFound},
		"redirect":     {status(302, "Location", "https://example.com/"), fault.Invalid},
		"broken":       {status(503), fault.Unavailable},
		"too many":     {status(429, "Retry-After", "30"), fault.RateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, c := setup(t)
			a.says(tt.answer)
			_, err := c.Embed(t.Context(), []string{"one", "two"})
			if !fault.Is(err, tt.kind) || strings.Contains(fault.Public(err), "sk-test") {
				t.Errorf("error %v (%q), want %s", err, fault.KindOf(err), tt.kind)
			}
			if name == "too many" {
				if after, _ := fault.Retry(err); after != 30*time.Second {
					t.Errorf("again after %v", after)
				}
			}
		})
	}
}

// An API that is down costs one request, then none until it has rested.
func TestAFailingAPIIsLeftAlone(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	a, c := setup(t, func(c *embed.Config) { c.Now = func() time.Time { return time.Unix(now.Load(), 0) } })
	if _, err := c.Embed(t.Context(), []string{"known"}); err != nil {
		t.Fatal(err)
	}
	a.says(func(w http.ResponseWriter, _ []string) { w.WriteHeader(http.StatusBadGateway) })
	fails := func(times int) {
		t.Helper()
		for range times {
			if _, err := c.Embed(t.Context(), []string{"new"}); !fault.Is(err, fault.Unavailable) {
				t.Fatalf("error %v", err)
			}
		}
	}
	fails(10)
	if n := a.asked(); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
	if _, err := c.Embed(t.Context(), []string{"known"}); err != nil {
		t.Errorf("what is known needs no API: %v", err)
	}
	now.Add(3)
	fails(10)
	now.Add(3) // it rests twice as long now
	fails(10)
	if n := a.asked(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
	now.Add(2)
	a.says(nil)
	if _, err := c.Embed(t.Context(), []string{"new"}); err != nil {
		t.Errorf("after its rest: %v", err)
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	a, c := setup(t, func(c *embed.Config) { c.Timeout = 50 * time.Millisecond })
	defer close(release)
	a.says(func(http.ResponseWriter, []string) { <-release })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Embed(ctx, []string{"x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the caller has left: %v", err)
	}
	if _, err := c.Embed(t.Context(), []string{"x"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a slow API: %v", err)
	}
	asked := a.asked()
	if _, err := c.Embed(t.Context(), []string{"y"}); !fault.Is(err, fault.Unavailable) || a.asked() != asked {
		t.Errorf("after that: %v, asked %d times", err, a.asked()-asked)
	}
}

func TestConfigurations(t *testing.T) {
	t.Parallel()
	for _, config := range []embed.Config{{}, {BaseURL: "localhost:80", Model: "m"}, {BaseURL: "ftp://x", Model: "m"}, {BaseURL: "https://:443/v1", Model: "m"}, {BaseURL: "http://x"}} {
		if _, err := embed.New(config); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", config, err)
		}
	}
	if c, err := embed.New(embed.Config{Model: "m"}); err != nil || c.Model() != "m" {
		t.Errorf("the official API: %v", err)
	}
}

// A server that numbers nothing gives the vectors in the order of the texts.
func TestVectorsWithoutNumbers(t *testing.T) {
	t.Parallel()
	a, c := setup(t)
	a.says(func(w http.ResponseWriter, inputs []string) {
		var data []map[string]any
		for _, text := range inputs {
			data = append(data, map[string]any{"embedding": memorytest.Vector(text)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	})
	got, err := c.Embed(t.Context(), []string{"one", "two"})
	if err != nil || !slices.Equal(got[0], memorytest.Vector("one")) || !slices.Equal(got[1], memorytest.Vector("two")) {
		t.Errorf("embedded wrongly: %v", err)
	}
}

// Of texts that do not depend on each other, those that the API refuses for what they are
// cost the others nothing, and let the API not rest.
func TestATextThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func(w http.ResponseWriter, inputs []string){
		"bad request":   func(w http.ResponseWriter, _ []string) { w.WriteHeader(http.StatusBadRequest) },
		"too large":     func(w http.ResponseWriter, _ []string) { w.WriteHeader(http.StatusRequestEntityTooLarge) },
		"unprocessable": func(w http.ResponseWriter, _ []string) { w.WriteHeader(http.StatusUnprocessableEntity) },
		"zero vector": func(w http.ResponseWriter, inputs []string) {
			write(w, inputs, func(i int, _ string) map[string]any {
				return map[string]any{"index": i, "embedding": make(memory.Vector, memory.Dimensions)}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, c := setup(t)
			a.says(func(w http.ResponseWriter, inputs []string) {
				if slices.Contains(inputs, "bad") {
					bad(w, inputs)
					return
				}
				write(w, inputs, vectorOf)
			})
			for range 2 { // the second time only what was refused is asked for
				got, err := c.EmbedEach(t.Context(), []string{"one", "bad", "two"})
				if err != nil || len(got) != 3 || !slices.Equal(got[0], memorytest.Vector("one")) || got[1] != nil || !slices.Equal(got[2], memorytest.Vector("two")) {
					t.Errorf("embedded wrongly: %v", err)
				}
			}
			if got := fmt.Sprint(a.batches); got != "[[one bad two] [Is anybody there?] [one] [bad] [two] [bad] [Is anybody there?] [bad]]" {
				t.Errorf("asked %s", got)
			}
			if _, err := c.Embed(t.Context(), []string{"bad"}); !fault.Is(err, fault.Invalid) {
				t.Errorf("alone: %v", err)
			}
			if _, err := c.Embed(t.Context(), []string{"new"}); err != nil {
				t.Errorf("another text after that: %v", err)
			}
		})
	}
}

// What is no word about a text is a failure of all of them: nobody may take one for
// refused. After that the API rests.
func TestAnAPIThatFailsRefusesNoText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		all, alone int // how texts are answered
		kind       fault.Kind
		asks       int
	}{
		"every text is refused":  {http.StatusBadRequest, http.StatusBadRequest, fault.Invalid, 2},
		"the key is wrong":       {http.StatusUnauthorized, http.StatusUnauthorized, fault.Unauthorized, 1},
		"it goes away meanwhile": {http.StatusBadRequest, http.StatusBadGateway, fault.Unavailable, 3},
		"too much meanwhile":     {http.StatusBadRequest, http.StatusTooManyRequests, fault.RateLimited, 3},
		"moved meanwhile":        {http.StatusBadRequest, http.StatusFound, fault.Invalid, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, c := setup(t)
			a.says(func(w http.ResponseWriter, inputs []string) {
				switch {
				case len(inputs) > 1:
					w.WriteHeader(tt.all)
				case tt.asks == 3 && inputs[0] == "Is anybody there?":
					write(w, inputs, vectorOf)
				default:
					w.WriteHeader(tt.alone)
				}
			})
			got, err := c.EmbedEach(t.Context(), []string{"one", "two"})
			if got != nil || !fault.Is(err, tt.kind) {
				t.Errorf("%d vectors, %v; want %s", len(got), err, tt.kind)
			}
			if _, err := c.EmbedEach(t.Context(), []string{"one", "two"}); err == nil || a.asked() != tt.asks {
				t.Errorf("at once again: %v, asked %q", err, a.batches)
			}
		})
	}
}

// An API that refuses every text rests, whichever of them was the first: each message has a
// question of its own.
func TestAnAPIThatRefusesEveryQuestionRests(t *testing.T) {
	t.Parallel()
	a, c := setup(t)
	a.says(func(w http.ResponseWriter, _ []string) { w.WriteHeader(http.StatusBadRequest) })
	for _, question := range []string{"one", "two", "three"} {
		if _, err := c.Embed(t.Context(), []string{question}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", question, err)
		}
	}
	if a.asked() != 2 {
		t.Errorf("asked %q, want the first question and whether it embeds anything", a.batches)
	}
}

// Who leaves while the API is asked whether it embeds anything says nothing about it.
func TestAProbeThatNobodyWaitsForLetsNothingRest(t *testing.T) {
	t.Parallel()
	a, c := setup(t)
	ctx, leave := context.WithCancel(t.Context())
	a.says(func(w http.ResponseWriter, inputs []string) {
		switch {
		case slices.Contains(inputs, "bad"):
			w.WriteHeader(http.StatusBadRequest)
		case inputs[0] == "Is anybody there?":
			leave()
			w.WriteHeader(http.StatusBadRequest)
		default:
			write(w, inputs, vectorOf)
		}
	})
	if _, err := c.EmbedEach(ctx, []string{"bad"}); err == nil {
		t.Error("nobody waits, and it was embedded")
	}
	if _, err := c.Embed(t.Context(), []string{"good"}); err != nil {
		t.Errorf("another text after that: %v", err)
	}
}
