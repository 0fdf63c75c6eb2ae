//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"remote-agent/docs"
	"remote-agent/internal/api"
	"remote-agent/internal/apikey"
)

// operation is an operation as the document describes it.
type operation struct {
	ID         string                 `json:"operationId"`
	Security   []map[string][]string  `json:"security"`
	Parameters []parameter            `json:"parameters"`
	Responses  map[string]docResponse `json:"responses"`

	method, path string
}

type parameter struct {
	Ref      string `json:"$ref"`
	Name     string `json:"name"`
	In       string `json:"in"`
	Required bool   `json:"required"`
	Schema   struct {
		Type    string   `json:"type"`
		Format  string   `json:"format"`
		Enum    []string `json:"enum"`
		Minimum *int64   `json:"minimum"`
		Maximum *int64   `json:"maximum"`
		Default any      `json:"default"`
	} `json:"schema"`
}

type docResponse struct {
	Ref     string `json:"$ref"`
	Headers map[string]struct {
		Required bool `json:"required"`
	} `json:"headers"`
	Content map[string]struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"content"`
}

// document is docs/openapi.yaml.
type document struct {
	raw        map[string]any
	operations map[string]operation // by id
	compiled   map[string]*jsonschema.Resolved
	components struct {
		Parameters map[string]parameter   `json:"parameters"`
		Responses  map[string]docResponse `json:"responses"`
		Schemas    map[string]any         `json:"schemas"`
	}
}

func readDocument(t *testing.T) document {
	t.Helper()
	d := document{operations: make(map[string]operation), compiled: make(map[string]*jsonschema.Resolved)}
	if err := yaml.Unmarshal(docs.OpenAPI(), &d.raw); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(d.raw)
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		OpenAPI    string                          `json:"openapi"`
		Servers    []struct{ URL string }          `json:"servers"`
		Paths      map[string]map[string]operation `json:"paths"`
		Components json.RawMessage                 `json:"components"`
	}
	if err := json.Unmarshal(encoded, &body); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body.Components, &d.components); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(body.OpenAPI, "3.1.") || len(body.Servers) != 1 {
		t.Fatalf("version %q, servers %v", body.OpenAPI, body.Servers)
	}
	for path, methods := range body.Paths {
		for method, o := range methods {
			o.method, o.path = strings.ToUpper(method), body.Servers[0].URL+path
			for i, p := range o.Parameters {
				if p.Ref != "" {
					o.Parameters[i] = d.components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]
				}
			}
			for status, r := range o.Responses {
				if r.Ref != "" {
					o.Responses[status] = d.components.Responses[strings.TrimPrefix(r.Ref, "#/components/responses/")]
				}
			}
			if d.operations[o.ID].ID != "" {
				t.Errorf("operation %s is there twice", o.ID)
			}
			d.operations[o.ID] = o
		}
	}
	return d
}

// schema compiles a schema of the document, in which an object has no members
// that are not described.
func (d document) schema(t *testing.T, raw json.RawMessage) *jsonschema.Resolved {
	t.Helper()
	if done := d.compiled[string(raw)]; done != nil {
		return done
	}
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	root["$defs"] = d.components.Schemas
	closeObjects(root)
	encoded, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	encoded = []byte(strings.ReplaceAll(string(encoded), "#/components/schemas/", "#/$defs/"))
	var s jsonschema.Schema
	if err := json.Unmarshal(encoded, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	d.compiled[string(raw)] = resolved
	return resolved
}

func closeObjects(node any) {
	switch n := node.(type) {
	case map[string]any:
		if _, ok := n["properties"].(map[string]any); ok && n["type"] == "object" {
			n["additionalProperties"] = false
		}
		for _, child := range n {
			closeObjects(child)
		}
	case []any:
		for _, child := range n {
			closeObjects(child)
		}
	}
}

// TestTheDocumentHasTheRoutes compares the document with the routes, both ways.
func TestTheDocumentHasTheRoutes(t *testing.T) {
	t.Parallel()
	describe := func(id, method, path, scope string, params []string) string {
		slices.Sort(params)
		return fmt.Sprintf("%s %s %s [%s] %s", id, method, path, scope, strings.Join(params, " "))
	}
	var want, got []string
	for _, o := range readDocument(t).operations {
		scope := ""
		for _, s := range o.Security {
			scope += strings.Join(s["key"], ",")
		}
		var params []string
		for _, p := range o.Parameters {
			limits := ""
			if p.Schema.Minimum != nil {
				limits = fmt.Sprintf("%d-%d", *p.Schema.Minimum, *p.Schema.Maximum)
			}
			usual := ""
			if p.Schema.Default != nil {
				usual = fmt.Sprint(p.Schema.Default)
			}
			params = append(params, fmt.Sprintf("%s:%s:%v:%s%s:%v:%s:%s", p.Name, p.In, p.Required, p.Schema.Type, p.Schema.Format, p.Schema.Enum, limits, usual))
		}
		want = append(want, describe(o.ID, o.method, o.path, scope, params))
	}
	for _, r := range api.Routes() {
		got = append(got, describe(r.ID, r.Method, r.Path, string(r.Scope), r.Params))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-document +code):\n%s", diff)
	}
}

// TestTheDocumentNamesAllScopesAndCodes keeps lists in the document complete.
func TestTheDocumentNamesAllScopesAndCodes(t *testing.T) {
	t.Parallel()
	d := readDocument(t)
	for _, s := range apikey.Scopes() {
		if !strings.Contains(string(docs.OpenAPI()), "`"+string(s)+"`") {
			t.Errorf("the scope %s is not described", s)
		}
	}
	problem, _ := d.components.Schemas["Problem"].(map[string]any)
	properties, _ := problem["properties"].(map[string]any)
	code, _ := properties["code"].(map[string]any)
	var codes []string
	listed, _ := code["enum"].([]any)
	for _, c := range listed {
		codes = append(codes, fmt.Sprint(c))
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(api.Codes())), slices.Sorted(slices.Values(codes))); diff != "" {
		t.Errorf("codes (-code +document):\n%s", diff)
	}
}

// asks returns a request of each operation that is answered with 200; what
// deletes stands last.
func (w *world) asks() []struct{ id, target string } {
	return []struct{ id, target string }{
		{"getIndex", ""},
		{"getDocument", "/openapi.yaml"},
		{"listConversations", "/conversations?limit=1"},
		{"getConversation", "/conversations/" + w.conversation.ID},
		{"listSessions", "/sessions"},
		{"getSession", "/sessions/" + w.done.ID},
		{"listMessages", "/messages?session=" + w.done.ID},
		{"listRuns", "/runs?session=" + w.done.ID},
		{"listToolCalls", "/tool-calls?session=" + w.done.ID},
		{"getToolCall", fmt.Sprintf("/tool-calls/%d", w.calls[0].ID)},
		{"listMemories", "/memories?person=telegram/42"},
		{"getMemory", "/memories/1?person=telegram/42"},
		{"listAgents", "/agents"},
		{"getAgent", "/agents/" + w.agent.ID},
		{"getUsage", "/usage?by=person"},
		{"forkSession", "/sessions/" + w.idle.ID + "/fork?n=2"}, // after the first time, which is 201
		{"deleteSession", "/sessions/" + w.done.ID},
		{"deleteConversation", "/conversations/" + w.other.ID},
		{"deleteMemory", "/memories/1?person=telegram/42"},
		{"deleteMemories", "/memories?person=telegram/42"},
		{"deleteAgent", "/agents/" + w.agent.ID},
	}
}

var idInPath = regexp.MustCompile(`^([^?]*/)([0-9a-f-]{36}|[0-9]+)(\?|/fork|$)`)

// TestAnswersAreAsTheDocumentSays brings every operation to every status that the
// document has for it, and to none that it has not, and holds the answers against
// the schemas.
func TestAnswersAreAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		d := readDocument(t)
		seen := make(map[string]map[string]bool)
		see := func(id string, want int, r reply) {
			t.Helper()
			if r.status != want {
				t.Errorf("%s: %d %s, want %d", id, r.status, r.body, want)
			}
			d.check(t, d.operations[id], r)
			if seen[id] == nil {
				seen[id] = map[string]bool{"default": true}
			}
			seen[id][strconv.Itoa(r.status)] = true
		}
		_, poor := w.key("poor", 0, "none:read") // a scope of a later version, perhaps
		asks := w.asks()
		for _, ask := range asks {
			o, target := d.operations[ask.id], api.Prefix+ask.target
			w.clock(w.now.Load().Add(time.Minute)) // the limit is for later
			see(ask.id, http.StatusUnauthorized, w.send(o.method, target, ""))
			see(ask.id, http.StatusNotAcceptable, w.send(o.method, target, w.token, accept("image/png")))
			see(ask.id, http.StatusRequestEntityTooLarge, w.send(o.method, target, w.token, withBody))
			see(ask.id, http.StatusBadRequest, w.send(o.method, target+with(target, "nonsense=1"), w.token))
			if o.Security != nil {
				see(ask.id, http.StatusForbidden, w.send(o.method, target, poor))
			}
			if idInPath.MatchString(target) {
				missing := missingID
				if strings.Contains(target, "tool-calls") || strings.Contains(target, "memories") {
					missing = "987654321"
				}
				see(ask.id, http.StatusNotFound, w.send(o.method, idInPath.ReplaceAllString(target, "${1}"+missing+"$3"), w.token))
			}
		}
		see("deleteSession", http.StatusConflict, w.send("DELETE", api.Prefix+"/sessions/"+w.busy.ID, w.token))
		see("deleteConversation", http.StatusConflict, w.send("DELETE", api.Prefix+"/conversations/"+w.conversation.ID, w.token))
		see("forkSession", http.StatusConflict, w.send("POST", api.Prefix+"/sessions/"+w.busy.ID+"/fork", w.token))
		see("forkSession", http.StatusCreated, w.send("POST", api.Prefix+"/sessions/"+w.idle.ID+"/fork?n=2", w.token))
		see("deleteAgent", http.StatusConflict, w.send("DELETE", api.Prefix+"/agents/"+w.worker.ID, w.token))
		for _, ask := range asks {
			see(ask.id, http.StatusOK, w.send(d.operations[ask.id].method, api.Prefix+ask.target, w.token))
		}
		for w.send("GET", api.Prefix, w.token).status == http.StatusOK { //nolint:revive // until the limit is reached
		}
		for _, ask := range asks {
			see(ask.id, http.StatusTooManyRequests, w.send(d.operations[ask.id].method, api.Prefix+ask.target, w.token))
		}
		w.clock(w.now.Load().Add(time.Hour))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, ask := range asks {
			see(ask.id, http.StatusServiceUnavailable, w.send(d.operations[ask.id].method, api.Prefix+ask.target, w.token))
		}
		for id, o := range d.operations {
			if diff := cmp.Diff(slices.Sorted(maps.Keys(o.Responses)), slices.Sorted(maps.Keys(seen[id]))); diff != "" {
				t.Errorf("statuses of %s (-document +seen):\n%s", id, diff)
			}
		}
	})
}

func accept(mediaType string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Accept", mediaType) }
}

func withBody(r *http.Request) {
	body := `{"a":1}`
	r.Body, r.ContentLength = http.NoBody, 0
	r2, err := http.NewRequest(r.Method, r.URL.String(), strings.NewReader(body))
	if err == nil {
		r.Body, r.ContentLength = r2.Body, r2.ContentLength
	}
}

// with is what joins one more parameter to a target.
func with(target, param string) string {
	if strings.Contains(target, "?") {
		return "&" + param
	}
	return "?" + param
}

// check holds an answer against what the document says of its status.
func (d document) check(t *testing.T, o operation, r reply) {
	t.Helper()
	described, ok := o.Responses[strconv.Itoa(r.status)]
	if !ok {
		t.Errorf("%s answers %d, which is not in the document", o.ID, r.status)
		return
	}
	mediaType := r.header.Get("Content-Type")
	content, ok := described.Content[mediaType]
	if !ok {
		t.Errorf("%s answers %d with %s, which is not in the document", o.ID, r.status, mediaType)
		return
	}
	for name, h := range described.Headers {
		if h.Required && r.header.Get(name) == "" {
			t.Errorf("%s answers %d without %s", o.ID, r.status, name)
		}
	}
	if r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s answers %d with Cache-Control %q", o.ID, r.status, r.header.Get("Cache-Control"))
	}
	if mediaType == "application/yaml" {
		if string(r.body) != string(docs.OpenAPI()) {
			t.Errorf("%s answers with another document", o.ID)
		}
		return
	}
	var body any
	if err := json.Unmarshal(r.body, &body); err != nil {
		t.Errorf("%s answers %d with no JSON: %s", o.ID, r.status, r.body)
		return
	}
	if err := d.schema(t, content.Schema).Validate(body); err != nil {
		t.Errorf("%s answers %d: %v\n%s", o.ID, r.status, err, r.body)
	}
	checkTimes(t, o.ID, body)
}

// checkTimes wants every member that is called like a time to be one in UTC.
func checkTimes(t *testing.T, id string, node any) {
	t.Helper()
	switch n := node.(type) {
	case map[string]any:
		for name, child := range n {
			if text, ok := child.(string); ok && (strings.HasSuffix(name, "_at") || name == "until") {
				if at, err := time.Parse(time.RFC3339Nano, text); err != nil || at.IsZero() || !strings.HasSuffix(text, "Z") {
					t.Errorf("%s has %s %q", id, name, text)
				}
			}
			checkTimes(t, id, child)
		}
	case []any:
		for _, child := range n {
			checkTimes(t, id, child)
		}
	}
}

// The schemas are no use if they let everything pass.
func TestTheSchemasRefuse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		d := readDocument(t)
		r := w.get(api.Prefix + "/messages?session=" + w.done.ID)
		schema := d.schema(t, d.operations["listMessages"].Responses["200"].Content["application/json"].Schema)
		for from, to := range map[string]string{
			`"role":"user"`: `"role":"nobody"`, `"seq":1`: `"seq":"1"`, `"undone":false,`: ``, `"items"`: `"rows"`,
			`"type":"thinking"`: `"type":"dream"`, `"text":"hm"`: `"text":"hm","more":1`, `"next_cursor":null`: `"next_cursor":7`,
		} {
			changed := strings.Replace(string(r.body), from, to, 1)
			if changed == string(r.body) {
				t.Errorf("there is no %s in %s", from, r.body)
			}
			var body any
			if err := json.Unmarshal([]byte(changed), &body); err != nil {
				t.Fatal(err)
			}
			if schema.Validate(body) == nil {
				t.Errorf("the schema takes %s instead of %s", to, from)
			}
		}
	})
}
