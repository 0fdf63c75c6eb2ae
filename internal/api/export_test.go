package api

import (
	"fmt"
	"net/http/httptest"

	"remote-agent/internal/apikey"
)

// RouteInfo is a route as the tests compare it with the document.
type RouteInfo struct {
	ID, Method, Path string
	Scope            apikey.Scope
	Params           []string
}

// Routes returns all routes.
func Routes() (list []RouteInfo) {
	for _, r := range routes() {
		info := RouteInfo{ID: r.id, Method: r.method, Path: Prefix + r.path, Scope: r.scope}
		for _, p := range r.params {
			info.Params = append(info.Params, p.describe())
		}
		list = append(list, info)
	}
	return list
}

// describe says what OpenAPI has to say of a parameter.
func (p param) describe() string {
	in, limits, usual := "query", "", ""
	if p.inPath {
		in = "path"
	}
	schema := map[kind]string{whole: "integer", flag: "boolean", moment: "stringdate-time", rowID: "stringuuid"}[p.kind]
	if schema == "" {
		schema = "string"
	}
	if p.kind == whole {
		limits = fmt.Sprintf("%d-%d", p.min, p.max)
	}
	if p.usual != nil {
		usual = fmt.Sprint(p.usual)
	}
	return fmt.Sprintf("%s:%s:%v:%s:%v:%s:%s", p.name, in, p.required, schema, p.words, limits, usual)
}

// Codes returns the codes of all problems.
func Codes() []string {
	return []string{
		codeKeyMissing, codeKeyInvalid, codeKeyExpired, codeKeyRevoked, codeScope, codeParameter, codeRequest, codeNotFound, codeMethod,
		codeNotAcceptable, codeConflict, codeTooLarge, codeRateLimited, codeInternal, codeUnavailable,
	}
}

// ParseSessionList is what the list of sessions reads of a query.
func ParseSessionList(rawQuery string) (map[string]any, error) {
	for _, r := range routes() {
		if r.id == "listSessions" {
			return parse(r.params, nil, rawQuery)
		}
	}
	return nil, nil
}

// ReadCursor reads the cursor of a list of sessions.
func ReadCursor(c string) ([]string, error) { return readCursor(sessionList, c, 2) }

// ProblemOf returns what a client gets for an error.
func ProblemOf(err error) (status int, body string) {
	out := httptest.NewRecorder()
	problemOf(err).write(out)
	return out.Code, out.Body.String()
}
