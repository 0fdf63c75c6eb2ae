// Package issuertest is an OpenID Connect provider for tests, on a loopback address.
package issuertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// Client is the id of the client that the provider knows.
const Client = "bot"

// Provider signs everybody in whom a test names.
type Provider struct {
	*httptest.Server

	Claims map[string]any // other than usual
	Status int            // of the answer to a code; 0: 200

	key  *ecdsa.PrivateKey
	back string

	mu    sync.Mutex // guards codes
	codes map[string]signedIn
}

// signedIn is what a code stands for.
type signedIn struct {
	asked url.Values
	email string
}

// New returns a provider that sends browsers to back.
func New(tb testing.TB, back string) *Provider {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	p := &Provider{key: key, back: back, codes: map[string]signedIn{}}
	known := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: oidc.ES256}}, Algorithms: []string{oidc.ES256}}
	mux := http.NewServeMux()
	mux.Handle("/", known)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	tb.Cleanup(p.Close)
	known.SetIssuer(p.URL)
	return p
}

// Asked returns what a browser asks that is sent to address, which has to be right.
func (p *Provider) Asked(tb testing.TB, address string) url.Values {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Scheme+"://"+u.Host != p.URL {
		tb.Fatalf("the browser is sent to %q, %v", address, err)
	}
	asked := u.Query()
	for name, want := range map[string]string{"client_id": Client, "redirect_uri": p.back, "response_type": "code", "code_challenge_method": "S256"} {
		if got := asked.Get(name); got != want {
			tb.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	return asked
}

// Answer is the query with which a browser comes back in which somebody signed in.
func (p *Provider) Answer(asked url.Values, email string) url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	code := rand.Text()
	p.codes[code] = signedIn{asked, email}
	return url.Values{"code": {code}, "state": {asked.Get("state")}}
}

// token is the token endpoint: a code is good once, for whoever has its verifier.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	who, ok := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case p.Status != 0:
		http.Error(w, "no", p.Status)
		return
	case !ok || r.PostFormValue("redirect_uri") != p.back || base64.RawURLEncoding.EncodeToString(sum[:]) != who.asked.Get("code_challenge"):
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := map[string]any{
		"iss": p.URL, "aud": Client, "sub": "1", "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(),
		"nonce": who.asked.Get("nonce"), "email": who.email, "email_verified": true,
	}
	maps.Copy(claims, p.Claims)
	text, err := json.Marshal(claims)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // a client that left needs no answer
		"access_token": "a", "token_type": "Bearer", "id_token": oidctest.SignIDToken(p.key, "k", oidc.ES256, string(text)),
	})
}
