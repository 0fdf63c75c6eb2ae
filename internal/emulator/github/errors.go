package github

import (
	"net/http"
	"strconv"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

// obj is a JSON object.
type obj = map[string]any

type fields = platformapi.Fields

// apiError is a refusal as the API words it.
type apiError struct {
	status  int
	message string
	docs    string
	errors  []any
	header  map[string]string
	html    bool // a page of a proxy in front of the API
}

const docsURL = "https://docs.github.com/rest"

func refuse(status int, message string) *apiError { return &apiError{status: status, message: message} }

func notFound() *apiError { return refuse(http.StatusNotFound, "Not Found") }

func badCredentials() *apiError { return refuse(http.StatusUnauthorized, "Bad credentials") }

func notAccessible(who *principal) *apiError {
	if who != nil && who.kind == personal {
		return refuse(http.StatusForbidden, "Resource not accessible by personal access token")
	}
	return refuse(http.StatusForbidden, "Resource not accessible by integration")
}

// invalid is 422 with one error of a field; an empty message leaves it out.
func invalid(resource, field, code, message string) *apiError {
	e := obj{"resource": resource, "code": code}
	if field != "" {
		e["field"] = field
	}
	if message != "" {
		e["message"] = message
	}
	return &apiError{status: http.StatusUnprocessableEntity, message: "Validation Failed", errors: []any{e}}
}

func secondaryLimit(status int, retryAfter time.Duration) *apiError {
	e := &apiError{
		status:  status,
		message: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach out to GitHub Support for help, please include the request ID.",
		docs:    docsURL + "/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits",
	}
	if retryAfter > 0 {
		e.header = map[string]string{"Retry-After": seconds(retryAfter)}
	}
	return e
}

func primaryLimit(who string) *apiError {
	return &apiError{
		status:  http.StatusForbidden,
		message: "API rate limit exceeded for " + who + ".",
		docs:    docsURL + "/overview/rate-limits-for-the-rest-api",
	}
}

// seconds rounds up.
func seconds(d time.Duration) string {
	return strconv.Itoa(max(1, int((d+time.Second-1)/time.Second)))
}

func writeError(w http.ResponseWriter, e *apiError) {
	for name, value := range e.header {
		w.Header().Set(name, value)
	}
	if e.html {
		platformapi.WritePage(w, e.status, "<h1>"+http.StatusText(e.status)+"</h1>Unicorn!")
		return
	}
	body := obj{"message": e.message, "documentation_url": e.docs, "status": strconv.Itoa(e.status)}
	if e.docs == "" {
		body["documentation_url"] = docsURL
	}
	if len(e.errors) > 0 {
		body["errors"] = e.errors
	}
	platformapi.WriteBody(w, e.status, "", platformapi.MustJSON(body))
}
