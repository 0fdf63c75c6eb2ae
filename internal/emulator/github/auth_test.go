package github_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/emulator/github"
)

func TestJWT(t *testing.T) {
	t.Parallel()
	w := start(t, github.Options{})
	block, _ := pem.Decode(w.PrivateKey())
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	claims := func(iat, exp time.Duration, iss any) map[string]any {
		return map[string]any{"iat": now.Add(iat).Unix(), "exp": now.Add(exp).Unix(), "iss": iss}
	}
	good := claims(-time.Minute, 9*time.Minute, "4711")
	parts := strings.Split(github.SignJWT(key, good), ".")
	for name, test := range map[string]struct {
		token  string
		status int
		part   string
	}{
		"good":             {github.SignJWT(key, good), 200, "remote-agent"},
		"number as issuer": {github.SignJWT(key, claims(-time.Minute, 9*time.Minute, 4711)), 200, ""},
		"client id":        {github.SignJWT(key, claims(-time.Minute, 9*time.Minute, "Iv23liEmulated4711")), 200, ""},
		"other key":        {github.SignJWT(other, good), 401, "could not be decoded"},
		"other issuer":     {github.SignJWT(key, claims(-time.Minute, 9*time.Minute, "4712")), 401, "iss"},
		"no issuer":        {github.SignJWT(key, claims(-time.Minute, 9*time.Minute, "")), 401, "iss"},
		"expired":          {github.SignJWT(key, claims(-11*time.Minute, -time.Minute, "4711")), 401, "exp"},
		"too long":         {github.SignJWT(key, claims(-time.Minute, 11*time.Minute, "4711")), 401, "too far"},
		"long by iat":      {github.SignJWT(key, claims(-5*time.Minute, 9*time.Minute, "4711")), 401, "too far"},
		"from the future":  {github.SignJWT(key, claims(time.Minute, 9*time.Minute, "4711")), 401, "iat"},
		"text as exp":      {github.SignJWT(key, map[string]any{"iat": now.Unix() - 60, "exp": "later", "iss": "4711"}), 401, "exp"},
		"no signature":     {parts[0] + "." + parts[1] + ".", 401, "could not be decoded"},
		"alg none":         {"eyJhbGciOiJub25lIn0." + parts[1] + ".", 401, "could not be decoded"},
		"garbage":          {"a.b.c", 401, "could not be decoded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := *w.as(test.token)
			in.t = t
			in.call("GET", "/app", nil).is(test.status, test.part)
		})
	}
	w.as(w.JWT()).call("GET", "/repos/acme/web", nil).is(401, "Bad credentials")
	w.as(w.JWT()).call("GET", "/repos/acme/web/installation", nil).is(200, `"app_id":4711`)
	w.as(w.JWT()).call("GET", "/repos/acme/none/installation", nil).is(404, "Not Found")
	w.as(w.JWT()).call("GET", "/app/installations", nil).is(200, "acme")
}

func TestInstallationTokens(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := start(t, github.Options{Now: func() time.Time { return now }})
	w.AddRepo(github.Repo{Name: "acme/api"})
	app := w.as(w.JWT())
	path := "/app/installations/" + w.installationID() + "/access_tokens"
	long := app.call("POST", path, nil).is(201, "").object()["token"].(string)
	if !regexp.MustCompile(`^ghs_4711_[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`).MatchString(long) || len(long) < 300 {
		t.Errorf("long token %q", long)
	}
	w.as(long).call("GET", "/repos/acme/web", nil).is(200, "")
	w.as(long).call("GET", "/repos/acme/api", nil).is(200, "")
	one := app.call("POST", path, o{"repositories": []string{"web"}, "permissions": o{"issues": "read", "metadata": "read"}}).is(201, `"full_name":"acme/web"`)
	narrow := w.as(one.object()["token"].(string))
	narrow.call("GET", "/repos/acme/api", nil).is(404, "")
	narrow.call("GET", "/installation/repositories", nil).is(200, `"total_count":1`)
	w.ann.OpenIssue("x", "x")
	narrow.call("GET", "/repos/acme/web/issues/1", nil).is(200, "")
	narrow.call("POST", "/repos/acme/web/issues/1/comments", o{"body": "x"}).is(403, "Resource not accessible by integration")
	narrow.call("GET", "/repos/acme/web/pulls", nil).is(403, "Resource not accessible by integration")
	app.call("POST", path, o{"repositories": []string{"nothing"}}).is(422, "does not exist or is not accessible")
	app.call("POST", path, o{"permissions": o{"administration": "write"}}).is(422, "not granted")
	app.call("POST", "/app/installations/1/access_tokens", nil).is(404, "")
	if !w.Allows(long, "acme/web.git", true) || w.Allows(narrow.token, "acme/web", false) || w.Allows("x", "acme/web", false) {
		t.Error("Allows is wrong")
	}
	w.SetInstallationPermissions("acme", map[string]string{"metadata": "read", "issues": "read"})
	w.as(long).call("POST", "/repos/acme/web/issues/1/comments", o{"body": "x"}).is(403, "Resource not accessible")
	now = now.Add(time.Hour)
	w.as(long).call("GET", "/repos/acme/web", nil).is(401, "Bad credentials")
	again := w.as(w.JWT()).call("POST", path, nil).is(201, "").object()["token"].(string)
	w.Uninstall("acme")
	w.as(again).call("GET", "/repos/acme/web", nil).is(401, "Bad credentials")
}

func TestCollaboratorPermission(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{})
	w.AddRepo(github.Repo{Name: "acme/secret", Private: true, Collaborators: map[string]github.Permission{
		"ann": github.Write, "max": github.Maintain, "tim": github.Triage, "rita": github.Read, "adi": github.Admin,
	}})
	w.AddUser(github.User{Login: "eve", Association: "OWNER"})
	for login, want := range map[string][2]string{
		"ann": {"write", "write"}, "max": {"write", "maintain"}, "tim": {"read", "triage"}, "rita": {"read", "read"},
		"adi": {"admin", "admin"}, "eve": {"none", "none"},
	} {
		got := w.call("GET", "/repos/acme/secret/collaborators/"+login+"/permission", nil).is(200, "").object()
		if got["permission"] != want[0] || got["role_name"] != want[1] || got["user"].(o)["login"] != login {
			t.Errorf("%s: %v", login, got)
		}
	}
	w.call("GET", "/repos/acme/web/collaborators/eve/permission", nil).is(200, `"permission":"read"`)
	w.call("GET", "/repos/acme/web/collaborators/nobody/permission", nil).is(404, "is not a user")
	w.SetPermission("acme/secret", "ann", github.None)
	w.call("GET", "/repos/acme/secret/collaborators/ann/permission", nil).is(200, `"permission":"none"`)
	id := w.UserOf("max").ID
	w.RenameUser("max", "maximilian")
	w.call("GET", "/users/maximilian", nil).is(200, `"id":`+strconv.FormatInt(id, 10))
	w.Person("eve").In("acme/web").OpenIssue("x", "x")
	w.call("GET", "/repos/acme/web/issues/1", nil).is(200, `"author_association":"OWNER"`)
}

func TestPersonalToken(t *testing.T) {
	t.Parallel()
	w := start(t, github.Options{Login: "robo"})
	w.AddRepo(github.Repo{Name: "acme/secret", Private: true, Collaborators: map[string]github.Permission{"robo": github.Write}})
	w.ann.OpenIssue("x", "x")
	mine := w.as(w.PersonalToken("robo"))
	mine.call("GET", "/user", nil).is(200, `"login":"robo"`)
	mine.call("GET", "/user/repos", nil).is(200, "acme/secret")
	mine.call("GET", "/app", nil).is(401, "")
	mine.call("GET", "/installation/repositories", nil).is(403, "installation access token")
	mine.call("POST", "/repos/acme/web/issues/1/comments", o{"body": "hello"}).is(201, `"performed_via_github_app":null`)
	mine.call("GET", "/repos/acme/web/collaborators/ann/permission", nil).is(403, "push access")
	mine.call("GET", "/repos/acme/secret/collaborators/robo/permission", nil).is(200, `"write"`)
	w.as(w.PersonalToken("robo", "public_repo")).call("GET", "/repos/acme/secret", nil).is(404, "")
	w.as(w.PersonalToken("rita")).call("GET", "/repos/acme/secret", nil).is(404, "")
	if got := w.Issue("acme/web", 1).Texts(); len(got) != 1 || got[0] != "hello" {
		t.Errorf("ledger %v", got)
	}
	w.RevokeToken(mine.token)
	mine.call("GET", "/user", nil).is(401, "Bad credentials")
}
