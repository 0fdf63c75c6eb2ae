package github

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxRequest is the largest body of a call that is read.
const maxRequest = 26 << 20

// request is one call of an operation.
type request struct {
	route *route
	vars  map[string]string
	http  *http.Request
	query url.Values
	in    *input
	who   *principal
	by    actor // who it acts as

	repo    *repo
	issue   *issue   // nil if there is none
	comment *comment // nil if there is none
}

// reply is what an operation answers.
type reply struct {
	status int // 0 is 200
	body   any
	header map[string]string
}

func ok(body any) (*reply, *apiError) { return &reply{body: body}, nil }

func created(body any) (*reply, *apiError) {
	return &reply{status: http.StatusCreated, body: body}, nil
}

func noContent() (*reply, *apiError) { return &reply{status: http.StatusNoContent}, nil }

func (r *request) id(name string) int64 {
	n, _ := strconv.ParseInt(r.vars[name], 10, 64) // only digits match
	return n
}

// input are the arguments in a JSON body, with what is wrong with them.
type input struct {
	fields map[string]json.RawMessage
	bad    []string
}

// readInput reads the body of a call.
func readInput(r *http.Request) (*input, *apiError) {
	in := &input{fields: map[string]json.RawMessage{}}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "Problems reading the body")
	}
	if len(body) == 0 {
		return in, nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && !strings.Contains(kind, "json") {
		return nil, refuse(http.StatusUnsupportedMediaType, "Unsupported content type. Please set the Content-Type header to application/json.")
	}
	if !json.Valid(body) || !utf8.Valid(body) {
		return nil, refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	if json.Unmarshal(body, &in.fields) != nil || in.fields == nil {
		return nil, refuse(http.StatusBadRequest, "Body should be a JSON object")
	}
	return in, nil
}

func (in *input) has(name string) bool {
	raw, ok := in.fields[name]
	return ok && string(raw) != "null"
}

// read reads an argument into what to points to, and reports whether it is there and of
// that kind.
func (in *input) read(name, kind string, to any) bool {
	if !in.has(name) {
		return false
	}
	if json.Unmarshal(in.fields[name], to) != nil {
		in.bad = append(in.bad, fmt.Sprintf("For 'properties/%s', %s is not %s.", name, clip(string(in.fields[name])), kind))
		return false
	}
	return true
}

func (in *input) text(name string) (value string, ok bool) {
	ok = in.read(name, "a string", &value)
	return value, ok
}

func (in *input) flag(name string) (value, ok bool) {
	ok = in.read(name, "a boolean", &value)
	return value, ok
}

func (in *input) int(name string) (value int64, ok bool) {
	ok = in.read(name, "an integer", &value)
	return value, ok
}

func (in *input) list(name string) (values []string, ok bool) {
	ok = in.read(name, "an array of strings", &values)
	return values, ok
}

// need reads a text that has to be there.
func (in *input) need(name string) string {
	text, ok := in.text(name)
	if !ok && len(in.bad) == 0 {
		in.bad = append(in.bad, fmt.Sprintf("%q wasn't supplied.", name))
	}
	return text
}

// refused returns what is wrong with the arguments that were read, or nil.
func (in *input) refused() *apiError {
	if len(in.bad) == 0 {
		return nil
	}
	return refuse(http.StatusUnprocessableEntity, "Invalid request.\n\n"+strings.Join(in.bad, "\n"))
}

func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// serve answers one call.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.attachments.serve(w, r) || s.creations.serve(w, r) { //nolint:contextcheck // what it makes GitHub deliver outlives it
		return
	}
	found, vars := s.operations.find(r)
	call := Call{Operation: "unknown", Method: r.Method, Path: r.URL.Path}
	in, refused := readInput(r)
	if in != nil {
		call.Body = maps.Clone(in.fields)
	}
	if found != nil {
		call.Operation = found.name
	}
	s.answer(w, r, call, func(call *Call) (*reply, *apiError, rate) { //nolint:contextcheck // what a call makes GitHub deliver outlives it
		defer s.world.writing()()
		return s.run(call, &request{route: found, vars: vars, http: r, query: r.URL.Query(), in: in}, refused)
	})
}

// run carries out a call. The lock must be held.
func (s *Server) run(call *Call, r *request, unreadable *apiError) (*reply, *apiError, rate) {
	if r.http.UserAgent() == "" {
		return nil, refuse(http.StatusForbidden, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header"), rate{}
	}
	who, refused := s.authenticate(r.http)
	if refused != nil {
		return nil, refused, rate{}
	}
	r.who, r.by, call.As = who, s.actor(who.user, who.kind == asInstallation), who.name()
	limit, refused := s.pace.count(r, call)
	if refused != nil {
		return nil, refused, limit
	}
	answer, refused := r.carryOut(unreadable)
	return answer, refused, limit
}

func (r *request) carryOut(unreadable *apiError) (*reply, *apiError) {
	if r.route == nil {
		return nil, notFound()
	}
	if version := r.http.Header.Get("X-Github-Api-Version"); version != "" {
		if _, err := time.Parse(time.DateOnly, version); err != nil {
			return nil, refuse(http.StatusBadRequest, "Invalid API version: "+version)
		}
	}
	if refused := cmp.Or(r.rightKind(), r.locate(), unreadable); refused != nil {
		return nil, refused
	}
	return r.route.run(r)
}

// rightKind checks that the operation takes the kind of credential.
func (r *request) rightKind() *apiError {
	switch {
	case r.route.auth == appOnly && r.who.kind != asApp:
		return refuse(http.StatusUnauthorized, "A JSON web token could not be decoded")
	case r.route.auth != appOnly && r.who.kind == asApp:
		return badCredentials()
	case r.route.auth == installationOnly && r.who.kind != asInstallation:
		return refuse(http.StatusForbidden, "You must authenticate with an installation access token in order to list repositories for an installation.")
	}
	return nil
}

// locate finds what the path names and checks what the caller may do there.
// Nothing is told about a place that the caller does not see.
func (r *request) locate() *apiError {
	w := r.by.world
	if r.vars["owner"] != "" {
		r.repo = w.findRepo(r.vars["owner"] + "/" + r.vars["repo"])
		if r.repo == nil || r.who.kind != asApp && !r.who.sees(r.repo) {
			return notFound()
		}
	}
	missing := false
	ofPulls := len(r.route.segments) > 3 && r.route.segments[3] == "pulls"
	if r.vars["number"] != "" {
		r.issue = r.repo.issue(r.id("number"))
		missing = r.issue == nil || ofPulls && r.issue.pull == nil
	}
	if r.vars["comment"] != "" {
		r.comment = w.comments[r.id("comment")]
		switch {
		case r.comment == nil || r.comment.issue.repo != r.repo || (r.comment.review != nil) != ofPulls,
			r.issue != nil && r.comment.issue != r.issue:
			missing = true
		default:
			r.issue = r.comment.issue
		}
	}
	if refused := r.may(); refused != nil {
		return refused
	}
	if missing {
		return notFound()
	}
	if r.repo != nil && r.repo.archived && r.http.Method != http.MethodGet && r.http.Method != http.MethodHead {
		return refuse(http.StatusForbidden, "Repository was archived so is read-only.")
	}
	return nil
}

// page cuts the page that the query asks for out of a list and sets the links to
// the others.
func page[T any](r *request, list []T) ([]T, map[string]string) {
	from, to, header := r.page(len(list))
	return list[from:to], header
}

// page returns from where to where the page of a list with so many elements goes.
func (r *request) page(length int) (from, to int, header map[string]string) {
	number := func(name string, otherwise, most int) int {
		n, err := strconv.Atoi(r.query.Get(name))
		if err != nil || n < 1 {
			return otherwise
		}
		return min(n, most)
	}
	per, at := number("per_page", 30, 100), number("page", 1, 1<<30)
	last := max(1, (length+per-1)/per)
	var links []string
	link := func(rel string, n int) {
		query := maps.Clone(r.query)
		query.Set("page", strconv.Itoa(n))
		links = append(links, fmt.Sprintf("<%s%s?%s>; rel=%q", "http://"+r.http.Host, r.http.URL.EscapedPath(), query.Encode(), rel))
	}
	if at > 1 {
		link("prev", at-1)
	}
	if at < last {
		link("next", at+1)
		link("last", last)
	}
	if at > 1 {
		link("first", 1)
	}
	header = map[string]string{}
	if len(links) > 0 {
		header["Link"] = strings.Join(links, ", ")
	}
	return min((at-1)*per, length), min(at*per, length), header
}

// paged answers a page of a list, each element as show shows it.
func paged[T, V any](r *request, list []T, show func(T) V) (*reply, *apiError) {
	part, header := page(r, list)
	return &reply{body: rendered(part, show), header: header}, nil
}

// since reads the query's since. Times of the API have seconds.
func (r *request) since() (time.Time, *apiError) {
	text := r.query.Get("since")
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, refuse(http.StatusUnprocessableEntity, "Invalid request.\n\nFor 'properties/since', "+clip(text)+" is not a valid date.")
	}
	return t, nil
}
