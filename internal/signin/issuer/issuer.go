// Package issuer signs people in through an OpenID Connect provider (OpenID Connect Core
// 1.0, the authorization code flow with PKCE). It says who somebody is there, and decides
// nothing about what they may do here.
package issuer

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"remote-agent/internal/fault"
)

const (
	// patience bounds one exchange with the provider.
	patience = 10 * time.Second

	// maxBody bounds what is read of one answer, in bytes.
	maxBody = 1 << 20

	maxRedirects = 3

	// EmailClaim is believed only where the provider says that it verified the address.
	EmailClaim = "email"
)

// Config is the client that the provider knows.
type Config struct {
	URL      string // the issuer, exactly as in its discovery document
	ClientID string
	Secret   string // empty for a public client
	Claim    string // of the ID token, which names people
	Client   *http.Client
}

// Issuer is a provider. What it says of itself is read when somebody first signs in, and
// again after a failure. It is safe for concurrent use.
type Issuer struct {
	config Config
	client *http.Client

	provider atomic.Pointer[oidc.Provider]
	asking   singleflight.Group // nobody waits for a provider that hangs longer than one exchange
}

// New returns an Issuer. It does no I/O.
func New(c Config) *Issuer {
	plain := http.DefaultTransport
	if c.Client != nil && c.Client.Transport != nil {
		plain = c.Client.Transport
	}
	return &Issuer{config: c, client: &http.Client{Transport: bounded{plain}, Timeout: patience, CheckRedirect: redirected}}
}

// redirected follows where documents of a provider are elsewhere. A code and the secret that
// goes with it are for the address that the provider gave for them, and no other.
func redirected(_ *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// bounded is a transport whose answers are of a bounded size.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxBody)
	}
	return resp, err //nolint:wrapcheck // a transport passes errors on as they are
}

// Name is what people know the provider by: its host.
func (i *Issuer) Name() string {
	u, err := url.Parse(i.config.URL)
	if err != nil || u.Host == "" {
		return i.config.URL
	}
	return u.Host
}

// State is what a browser keeps between the way to the provider and the way back.
type State struct{ state, nonce, verifier string }

// Text is the state as a browser can keep it; ParseState reads it.
func (s State) Text() string { return s.state + "." + s.nonce + "." + s.verifier }

// ParseState reads a state. One of another form matches no answer.
func ParseState(text string) State {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return State{}
	}
	return State{parts[0], parts[1], parts[2]}
}

// Begin returns where to send a browser, and the state that it has to bring back. back is
// the address that the provider sends it to, which the provider has to know. It is
// fault.Unavailable if the provider does not answer.
func (i *Issuer) Begin(ctx context.Context, back string) (address string, s State, err error) {
	client, _, err := i.connect(ctx, back)
	if err != nil {
		return "", State{}, err
	}
	s = State{state: rand.Text(), nonce: rand.Text(), verifier: oauth2.GenerateVerifier()}
	return client.AuthCodeURL(s.state, oidc.Nonce(s.nonce), oauth2.S256ChallengeOption(s.verifier)), s, nil
}

// Finish returns whom the provider names, of the query with which a browser came back and
// the state that it kept. It is fault.Invalid if the two do not belong together,
// fault.Forbidden if the provider or the person said no, or the name cannot be believed,
// and fault.Unavailable if the provider does not answer.
func (i *Issuer) Finish(ctx context.Context, back string, s State, query url.Values) (name string, err error) {
	if s.state == "" || subtle.ConstantTimeCompare([]byte(s.state), []byte(query.Get("state"))) != 1 {
		return "", fault.New(fault.Invalid, "This sign-in was not begun in this browser, or too long ago. Begin again.")
	}
	if query.Get("error") != "" || query.Get("code") == "" {
		return "", fault.Newf(fault.Forbidden, "%s did not sign you in.", i.Name())
	}
	client, provider, err := i.connect(ctx, back)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, i.client), patience)
	defer cancel()
	answer, err := client.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(s.verifier))
	if said := (*oauth2.RetrieveError)(nil); errors.As(err, &said) && said.Response != nil && said.Response.StatusCode < http.StatusInternalServerError {
		return "", &fault.Error{Kind: fault.Forbidden, Err: err, Public: i.Name() + " did not accept the sign-in. Begin again; if it fails again, an operator has to check OIDC_CLIENT_ID and OIDC_CLIENT_SECRET."}
	}
	if err != nil {
		return "", i.away(err)
	}
	raw, _ := answer.Extra("id_token").(string)
	token, err := provider.VerifierContext(oidc.ClientContext(context.WithoutCancel(ctx), i.client), &oidc.Config{ClientID: i.config.ClientID}).Verify(ctx, raw)
	if err != nil || subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(s.nonce)) != 1 {
		return "", &fault.Error{Kind: fault.Forbidden, Err: err, Public: "What " + i.Name() + " says about you could not be verified. Begin again."}
	}
	return i.named(token)
}

// named returns the claim that names people.
func (i *Issuer) named(token *oidc.IDToken) (string, error) {
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return "", &fault.Error{Kind: fault.Forbidden, Err: err, Public: "What " + i.Name() + " says about you could not be read."}
	}
	name, _ := claims[i.config.Claim].(string)
	if name == "" {
		return "", fault.Newf(fault.Forbidden, "%s gives no %q of you. An operator can name another claim in OIDC_CLAIM.", i.Name(), i.config.Claim)
	}
	if verified := claims["email_verified"]; i.config.Claim == EmailClaim && verified != true && verified != "true" {
		return "", fault.Newf(fault.Forbidden, "%s has not verified your email address.", i.Name())
	}
	return name, nil
}

// connect returns the client of the provider, after it was discovered.
func (i *Issuer) connect(ctx context.Context, back string) (*oauth2.Config, *oidc.Provider, error) {
	provider := i.provider.Load()
	if provider == nil {
		found := i.asking.DoChan("", func() (any, error) {
			// The provider keeps the context for its keys, so that it must not end with the request.
			p, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), i.client), i.config.URL)
			if err == nil {
				i.provider.Store(p)
			}
			return nil, err
		})
		select {
		case result := <-found:
			if result.Err != nil {
				return nil, nil, i.away(result.Err)
			}
		case <-ctx.Done():
			return nil, nil, i.away(ctx.Err())
		}
		provider = i.provider.Load()
	}
	return &oauth2.Config{
		ClientID: i.config.ClientID, ClientSecret: i.config.Secret, Endpoint: provider.Endpoint(),
		RedirectURL: back, Scopes: []string{oidc.ScopeOpenID, "email", "profile"},
	}, provider, nil
}

func (i *Issuer) away(err error) error {
	return &fault.Error{
		Kind: fault.Unavailable, Err: fmt.Errorf("talk to the OpenID Connect issuer: %w", err),
		Public: i.Name() + " does not answer as an OpenID Connect issuer. Try again, or get a link: send /web to the bot in a private chat.",
	}
}
