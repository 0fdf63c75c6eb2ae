package github

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

type principalKind int

const (
	asApp principalKind = iota + 1 // with a JWT
	asInstallation
	personal
)

// principal is who calls.
type principal struct {
	kind         principalKind
	user         *user // who it acts as; nil for the App
	installation *installation
	token        *token
}

// name is what limits are counted by, and what refusals call it.
func (p *principal) name() string {
	switch p.kind {
	case asInstallation:
		return "installation ID " + itoa64(p.installation.id)
	case personal:
		return "user ID " + itoa64(p.user.id)
	default:
		return "the App"
	}
}

// token is an access token.
type token struct {
	text         string
	user         *user // of a personal one
	scopes       []string
	installation *installation
	repos        []*repo           // narrowed to these; nil is all of the installation
	permissions  map[string]string // narrowed to these; nil is all of the installation
	expires      time.Time         // zero is never
	revoked      bool
}

// credentials are what calls are signed in with: the App's key, and tokens.
type credentials struct {
	world *world
	key   func() *rsa.PrivateKey

	tokens map[string]*token // the world's lock guards it
}

// PersonalToken returns a new classic personal access token of a user, with
// scopes; none is "repo".
func (c *credentials) PersonalToken(login string, scopes ...string) string {
	defer c.world.writing()()
	if len(scopes) == 0 {
		scopes = []string{"repo"}
	}
	t := &token{text: "ghp_" + letters(36), user: c.world.know(login), scopes: scopes}
	c.tokens[t.text] = t
	return t.text
}

// RevokeToken makes a token worthless.
func (c *credentials) RevokeToken(text string) {
	defer c.world.writing()()
	if t := c.tokens[text]; t != nil {
		t.revoked = true
	}
}

// ExpireTokens ends all installation tokens, as time does.
func (c *credentials) ExpireTokens() {
	defer c.world.writing()()
	for _, t := range c.tokens {
		if t.installation != nil {
			t.expires = c.world.now().Add(-time.Second)
		}
	}
}

// Allows reports whether a token is good for fetching from a repository, or for
// pushing to it. A test gives it to the git server that it runs beside.
func (c *credentials) Allows(tokenText, repoName string, push bool) bool {
	defer c.world.reading()()
	who, refused := c.bearer(tokenText)
	r := c.world.findRepo(strings.TrimSuffix(repoName, ".git"))
	if refused != nil || r == nil || who.kind == asApp || !who.sees(r) {
		return false
	}
	level := Read
	if push {
		level = Write
	}
	if who.kind == personal {
		return r.role(who.user).atLeast(level)
	}
	return who.granted("contents", string(level))
}

func letters(n int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails
	for i, b := range raw {
		raw[i] = alphabet[int(b)%len(alphabet)]
	}
	return string(raw)
}

// issue gives a token of an installation its text, which has a JWT inside.
func (c *credentials) issue(t *token) {
	opts := &c.world.opts
	t.expires = c.world.now().Add(opts.TokenLifetime)
	part := base64.RawURLEncoding.EncodeToString
	header := part([]byte(`{"alg":"RS256","kid":"` + letters(16) + `","typ":"JWT"}`))
	claims := part(platformapi.MustJSON(fields{{"aud", "api.github.com"}, {"exp", t.expires.Unix()}, {"iss", "https://github.com"}, {"jti", letters(22)}, {"sub", itoa64(t.installation.id)}}.Object()))
	signature := make([]byte, 192)
	_, _ = rand.Read(signature)
	t.text = "ghs_" + itoa64(opts.App.ID) + "_" + header + "." + claims + "." + part(signature)
	c.tokens[t.text] = t
}

// authenticate finds out who calls. The lock must be held.
func (c *credentials) authenticate(r *http.Request) (*principal, *apiError) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 || values[0] == "" {
		return nil, refuse(http.StatusUnauthorized, "Requires authentication")
	}
	if _, password, ok := r.BasicAuth(); ok {
		return c.bearer(password)
	}
	scheme, credential, _ := strings.Cut(values[0], " ")
	if !sameName(scheme, "bearer") && !sameName(scheme, "token") {
		return nil, badCredentials()
	}
	return c.bearer(strings.TrimSpace(credential))
}

func (c *credentials) bearer(credential string) (*principal, *apiError) {
	if strings.Count(credential, ".") == 2 && !strings.HasPrefix(credential, "gh") {
		if refused := c.checkJWT(credential); refused != nil {
			return nil, refused
		}
		return &principal{kind: asApp}, nil
	}
	t := c.tokens[credential]
	if t == nil || t.revoked || !t.expires.IsZero() && !c.world.now().Before(t.expires) {
		return nil, badCredentials()
	}
	if t.installation == nil {
		return &principal{kind: personal, user: t.user, token: t}, nil
	}
	if !slices.Contains(c.world.installations, t.installation) {
		return nil, badCredentials()
	}
	return &principal{kind: asInstallation, user: c.world.appBot, installation: t.installation, token: t}, nil
}

// checkJWT checks the signature and the claims of a JSON web token.
func (c *credentials) checkJWT(text string) *apiError {
	unreadable := refuse(http.StatusUnauthorized, "A JSON web token could not be decoded")
	parts := strings.Split(text, ".")
	var raw [3][]byte
	for i, p := range parts {
		var err error
		if raw[i], err = base64.RawURLEncoding.DecodeString(p); err != nil {
			return unreadable
		}
	}
	var header struct {
		Alg string `json:"alg"`
	}
	var claims struct {
		Iat, Exp, Iss json.RawMessage
	}
	if json.Unmarshal(raw[0], &header) != nil || header.Alg != "RS256" || json.Unmarshal(raw[1], &claims) != nil {
		return unreadable
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(&c.key().PublicKey, crypto.SHA256, sum[:], raw[2]) != nil {
		return unreadable
	}
	now := c.world.now()
	exp, err := strconv.ParseInt(string(claims.Exp), 10, 64)
	switch {
	case err != nil || !time.Unix(exp, 0).After(now):
		return refuse(http.StatusUnauthorized, "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case time.Unix(exp, 0).After(now.Add(10 * time.Minute)):
		return refuse(http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future")
	}
	iat, err := strconv.ParseInt(string(claims.Iat), 10, 64)
	switch {
	case err != nil || time.Unix(iat, 0).After(now):
		return refuse(http.StatusUnauthorized, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case exp-iat > int64((11 * time.Minute).Seconds()): // ten minutes, and one for the clock
		return refuse(http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future")
	}
	issuer := strings.Trim(string(claims.Iss), `"`)
	switch issuer {
	case "":
		return refuse(http.StatusUnauthorized, "Missing 'issuer' claim ('iss') in assertion")
	case itoa64(c.world.opts.App.ID), c.world.opts.App.ClientID:
		return nil
	}
	return refuse(http.StatusUnauthorized, "'Issuer' claim ('iss') must be an Integer")
}

func makeKey(given *rsa.PrivateKey) *rsa.PrivateKey {
	if given != nil {
		return given
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic("github emulator: no key: " + err.Error())
	}
	return key
}

// PrivateKey returns the App's private key as GitHub hands it out: PKCS #1 in
// PEM.
func (c *credentials) PrivateKey() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(c.key())})
}

// sees reports whether a caller gets to know that a repository exists.
func (p *principal) sees(r *repo) bool {
	switch p.kind {
	case asInstallation:
		return slices.Contains(p.installation.repos, r) && (p.token.repos == nil || slices.Contains(p.token.repos, r))
	case personal:
		if r.private && !slices.Contains(p.token.scopes, "repo") {
			return false
		}
		return r.role(p.user).atLeast(Read)
	default:
		return false
	}
}

// granted reports whether an installation's token has a permission.
func (p *principal) granted(name, level string) bool {
	has := levelRank(p.installation.permissions[name])
	if p.token.permissions != nil {
		// Both bound it: the installation's may have become fewer.
		has = min(has, levelRank(p.token.permissions[name]))
	}
	return has >= levelRank(level)
}

func levelRank(level string) int { return slices.Index([]string{"", "read", "write", "admin"}, level) }

// may refuses an operation to those who lack what it needs.
func (r *request) may() *apiError {
	for _, p := range r.route.perms {
		if p.pull && (r.issue == nil || r.issue.pull == nil) {
			continue
		}
		switch r.who.kind {
		case asInstallation:
			if r.who.granted(p.name, p.level) {
				return nil
			}
		case personal:
			// A token of a person may do what the person may.
			if r.repo == nil || r.repo.role(r.who.user).atLeast(p.role) {
				if slices.Contains(r.who.token.scopes, "repo") || slices.Contains(r.who.token.scopes, "public_repo") || p.level == "read" {
					return nil
				}
			}
		default:
		}
	}
	if len(r.route.perms) == 0 {
		return nil
	}
	if r.who.kind == personal && r.repo != nil && r.route.perms[0].role.atLeast(Write) {
		return refuse(http.StatusForbidden, "Must have push access to repository")
	}
	return notAccessible(r.who)
}

// narrowed checks the permissions that a token shall have.
func narrowed(asked, has map[string]string) bool {
	for name, level := range asked {
		if levelRank(level) < 1 || levelRank(has[name]) < levelRank(level) {
			return false
		}
	}
	return true
}

func (t *token) effective() map[string]string {
	if t.permissions != nil {
		return maps.Clone(t.permissions)
	}
	return maps.Clone(t.installation.permissions)
}
