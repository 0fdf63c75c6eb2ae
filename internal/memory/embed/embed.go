// Package embed asks an OpenAI-compatible embeddings API for vectors, through
// go-openai.
//
// Recall never depends on it: what cannot be embedded now is found by its words.
// So after a failure the client does not ask again for a while, and says so at
// once instead of letting an answer wait.
package embed

import (
	"bytes"
	"cmp"
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/memory"
)

// OfficialURL is the API that is asked if no other is named.
const OfficialURL = "https://api.openai.com/v1"

const (
	maxAnswer = 16 << 20 // bytes of one answer
	maxInput  = 8000     // bytes of one text; the rest is not embedded
	firstRest = 2 * time.Second
	maxRest   = 2 * time.Minute
)

// Config configures a Client. The zero value of an optional field means its
// default.
type Config struct {
	BaseURL string // with the API's /v1; default OfficialURL
	APIKey  string // empty for a server without keys
	Model   string // required

	Timeout   time.Duration     // of one request; default 10 seconds
	Batch     int               // texts of one request; default 64
	CacheSize int               // texts that are remembered with their vectors; default 2000
	Transport http.RoundTripper // default: like http.DefaultTransport, of its own
	Now       func() time.Time  // default time.Now
}

// Client embeds texts. It is safe for concurrent use.
type Client struct {
	config Config
	http   *http.Client
	api    *openai.Client

	mu      sync.Mutex // guards all below
	order   *list.List // of *cached, most recently used first
	byKey   map[[sha256.Size]byte]*list.Element
	rest    time.Duration // after the next failure
	resting time.Time     // nothing is asked before
	why     error         // of the last failure
}

type cached struct {
	key    [sha256.Size]byte
	vector memory.Vector
}

// New returns a Client. It asks nothing yet. fault.Invalid says what is wrong with
// the configuration.
func New(config Config) (*Client, error) {
	config.BaseURL = cmp.Or(config.BaseURL, OfficialURL)
	u, err := url.Parse(config.BaseURL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fault.New(fault.Invalid, "EMBEDDING_BASE_URL is not a valid address; use one like https://api.openai.com/v1.")
	}
	if config.Model == "" {
		return nil, fault.New(fault.Invalid, "EMBEDDING_MODEL is empty; set a model that supports 384 dimensions.")
	}
	config.Timeout = cmp.Or(config.Timeout, 10*time.Second)
	config.Batch = cmp.Or(config.Batch, 64)
	config.CacheSize = cmp.Or(config.CacheSize, 2000)
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Transport == nil {
		config.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true,
		}
	}
	c := &Client{
		config: config, order: list.New(), byKey: make(map[[sha256.Size]byte]*list.Element), rest: firstRest,
		http: &http.Client{
			Transport: config.Transport,
			// The key is for this host and path only.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	api := openai.DefaultConfig(config.APIKey)
	api.BaseURL, api.HTTPClient = config.BaseURL, doer{c.http}
	c.api = openai.NewClientWithConfig(api)
	return c, nil
}

// Model returns the name of the model, by which vectors can be compared.
func (c *Client) Model() string { return c.config.Model }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Embed returns a vector for each text, in order. Texts that were embedded lately
// cost nothing. All vectors pass memory.Vector's Check.
//
// While the API rests after a failure, Embed fails at once with the kind of that
// failure. It fails as a whole: what was embedded before stays known. A text that the
// API refuses is no failure, unless it refuses a harmless one, too.
func (c *Client) Embed(ctx context.Context, texts []string) ([]memory.Vector, error) {
	out, err := c.embed(ctx, texts)
	if errors.Is(err, errText) {
		if broken := c.probe(ctx); broken != nil {
			return nil, broken
		}
	}
	return out, err
}

func (c *Client) embed(ctx context.Context, texts []string) ([]memory.Vector, error) {
	out := make([]memory.Vector, len(texts))
	missing := make(map[[sha256.Size]byte][]int)
	var keys [][sha256.Size]byte
	for i, text := range texts {
		key := sha256.Sum256([]byte(input(text)))
		if v := c.known(key); v != nil {
			out[i] = v
			continue
		}
		if missing[key] == nil {
			keys = append(keys, key)
		}
		missing[key] = append(missing[key], i)
	}
	for len(keys) > 0 {
		batch := keys[:min(len(keys), c.config.Batch)]
		keys = keys[len(batch):]
		ask := lists.Map(batch, func(key [sha256.Size]byte) string { return input(texts[missing[key][0]]) })
		vectors, err := c.ask(ctx, ask)
		if err != nil {
			return nil, err
		}
		for i, key := range batch {
			c.keep(key, vectors[i])
			for _, at := range missing[key] {
				out[at] = vectors[i]
			}
		}
	}
	return out, nil
}

// EmbedEach is Embed for texts that do not depend on each other: where the API refuses
// some because of what they are, too long for the model for one, it returns the vectors
// of the others, and nil in the place of those. Each is asked for on its own then. An API
// that does not embed anything at all refuses no text: that is an error.
func (c *Client) EmbedEach(ctx context.Context, texts []string) ([]memory.Vector, error) {
	out, err := c.embed(ctx, texts)
	if !errors.Is(err, errText) {
		return out, err
	}
	if err := c.probe(ctx); err != nil {
		return nil, err
	}
	out = make([]memory.Vector, len(texts))
	for i, text := range texts {
		switch one, err := c.embed(ctx, []string{text}); {
		case err == nil:
			out[i] = one[0]
		case !errors.Is(err, errText):
			return nil, err
		}
	}
	return out, nil
}

// probe asks whether the API embeds anything, after it refused a text. If not, it rests.
func (c *Client) probe(ctx context.Context) error {
	_, err := c.ask(ctx, []string{harmless})
	if errors.Is(err, errText) {
		c.judge(err)
	}
	return err
}

// errText is part of an error that a text may be the reason of, and not the API.
var errText = errors.New("a text may be the reason")

// harmless is a text that every model embeds.
const harmless = "Is anybody there?"

// input is what is embedded of a text. APIs refuse empty ones.
func input(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > maxInput {
		text = strings.ToValidUTF8(text[:maxInput], "")
	}
	return cmp.Or(text, ".")
}

func (c *Client) known(key [sha256.Size]byte) memory.Vector {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).vector
}

func (c *Client) keep(key [sha256.Size]byte, v memory.Vector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byKey[key]; ok {
		return
	}
	c.byKey[key] = c.order.PushFront(&cached{key: key, vector: v})
	for c.order.Len() > c.config.CacheSize {
		oldest := c.order.Back()
		delete(c.byKey, oldest.Value.(*cached).key)
		c.order.Remove(oldest)
	}
}

// ask makes one request, unless the API rests.
func (c *Client) ask(ctx context.Context, texts []string) ([]memory.Vector, error) {
	if err := c.mayAsk(); err != nil {
		return nil, err
	}
	asked, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	vectors, err := c.request(asked, texts)
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err() // the caller left: that says nothing about the API
	}
	if !errors.Is(err, errText) { // one text says nothing about the API
		c.judge(err)
	}
	return vectors, err
}

func (c *Client) mayAsk() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.config.Now().Before(c.resting) {
		return &fault.Error{Kind: fault.KindOf(c.why), Public: "The embeddings API failed recently and is paused for a while.",
			Err: errors.New("resting after: " + c.why.Error())}
	}
	return nil
}

// judge lets the API rest after a failure, longer after each.
func (c *Client) judge(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = err
	if err == nil {
		c.rest, c.resting = firstRest, time.Time{}
		return
	}
	wait := c.rest
	if f, ok := errors.AsType[*fault.Error](err); ok && f.RetryAfter > wait {
		wait = min(f.RetryAfter, 10*time.Minute)
	}
	c.resting = c.config.Now().Add(wait)
	c.rest = min(2*c.rest, maxRest)
}

func (c *Client) request(ctx context.Context, texts []string) ([]memory.Vector, error) {
	answer, err := c.api.CreateEmbeddings(ctx, openai.EmbeddingRequestStrings{
		Input: texts, Model: openai.EmbeddingModel(c.config.Model),
		Dimensions: memory.Dimensions, EncodingFormat: openai.EmbeddingEncodingFormatFloat,
	})
	if _, classified := errors.AsType[*fault.Error](err); classified {
		return nil, err
	}
	if err != nil { // the whole answer was read, so it is its form that is wrong
		return nil, &fault.Error{Kind: fault.Invalid, Public: "The embeddings API sent an invalid response.", Err: fmt.Errorf("read embeddings: %w", err)}
	}
	return inOrder(answer.Data, len(texts))
}

// doer sends requests for go-openai, which neither bounds what it reads nor
// tells of Retry-After: all that is not a whole answer of 200 is a fault here.
type doer struct{ *http.Client }

// Do implements openai.HTTPDoer.
func (d doer) Do(req *http.Request) (*http.Response, error) {
	res, err := d.Client.Do(req) //nolint:gosec // to the address that the operator set
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "reach the embeddings API")
	}
	defer res.Body.Close() //nolint:errcheck // read as far as it is wanted
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case res.StatusCode != http.StatusOK:
		return nil, refused(res, raw)
	case err != nil:
		return nil, fault.Wrap(err, fault.Unavailable, "read embeddings")
	case len(raw) > maxAnswer:
		return nil, fault.Newf(fault.Invalid, "The embeddings API sent more than %d MiB.", maxAnswer>>20)
	}
	res.Body = io.NopCloser(bytes.NewReader(raw))
	return res, nil
}

// refused makes an error of an answer that is not 200. The text of the answer may
// repeat what was asked, so only its first bytes are kept, for the log.
func refused(res *http.Response, raw []byte) error {
	f := &fault.Error{
		Kind:   fault.Unavailable,
		Public: fmt.Sprintf("The embeddings API responded with status %d.", res.StatusCode),
		Err:    fmt.Errorf("embeddings API: status %d: %.200q", res.StatusCode, raw),
	}
	switch code := res.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		f.Kind = fault.Unauthorized
		f.Public = "The embeddings API rejected the key; check EMBEDDING_API_KEY."
	case code == http.StatusTooManyRequests:
		f.Kind = fault.RateLimited
		if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
			f.RetryAfter = fault.Asked(float64(seconds), time.Hour)
		}
	case code == http.StatusNotFound:
		f.Kind = fault.NotFound
		f.Public = "No embeddings API or no such model at that address; check EMBEDDING_BASE_URL and EMBEDDING_MODEL."
	case code == http.StatusBadRequest || code == http.StatusRequestEntityTooLarge || code == http.StatusUnprocessableEntity:
		f.Err = fmt.Errorf("%w: %w", f.Err, errText)
		fallthrough
	case code >= 300 && code < 500:
		f.Kind = fault.Invalid
		f.Public = fmt.Sprintf("The embeddings API rejected the request with status %d; check that EMBEDDING_MODEL supports %d dimensions.", code, memory.Dimensions)
	}
	return f
}

// inOrder returns the vectors of n texts. The API may give them in any order; one
// that does not number them gives them in that of the texts.
func inOrder(data []openai.Embedding, n int) ([]memory.Vector, error) {
	if len(data) != n {
		return nil, fault.Newf(fault.Invalid, "The embeddings API returned %[2]d embeddings instead of %[1]d.", n, len(data))
	}
	numbered := slices.ContainsFunc(data, func(d openai.Embedding) bool { return d.Index != 0 })
	out := make([]memory.Vector, n)
	for i, d := range data {
		at := i
		if numbered {
			at = d.Index
		}
		if at < 0 || at >= n || out[at] != nil {
			return nil, fault.Newf(fault.Invalid, "The embeddings API numbers its embeddings wrong: %d of %d.", at, n)
		}
		out[at] = d.Embedding
		if err := out[at].Check(); err != nil {
			return nil, fmt.Errorf("%w: %w", err, errText)
		}
	}
	return out, nil
}
