package github

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

var (
	appIDForm = pattern.Lazy(`^(?:[1-9][0-9]{0,18}|Iv[A-Za-z0-9.]{6,60})$`)

	// tokenForm leaves room for formats to come (contract C8).
	tokenForm = pattern.Lazy(`^[A-Za-z0-9._-]{8,}$`)
)

// caller is whose credentials a call is made with: an installation by its
// number, or one of these.
type caller int64

const (
	asToken caller = 0  // the personal token
	asApp   caller = -1 // the App itself
)

// identity is the bot's own account.
type identity struct {
	id          int64  // of the person or the App
	login       string // "slug[bot]" for an App
	slug        string // of an App
	permissions map[string]string
	events      []string
	scopes      []string // of a classic personal token
}

const (
	// tokenMargin is how long before its end a token is replaced.
	tokenMargin = 5 * time.Minute

	// assertionLife is how long an App's assertion is good; GitHub takes at most
	// ten minutes (contract C7). It is dated back for clocks that differ.
	assertionLife = 9 * time.Minute
	assertionSkew = time.Minute
)

// minted is a credential that is made when needed, by one at a time.
type minted struct {
	lock  chan struct{} // has room for the one who makes it; guards the rest
	value string
	until time.Time     // to be replaced then
	ahead time.Duration // GitHub's clock, as it was believed to be for an assertion
}

type tokenKey struct {
	installation int64
	repo         string // empty: all that the installation can see
}

// get returns the credential, made by mint if there is none that is good.
func (m *minted) get(ctx context.Context, mint func() (string, time.Time, error)) (string, error) {
	select {
	case m.lock <- struct{}{}:
	case <-ctx.Done():
		return "", fault.Wrap(ctx.Err(), fault.KindOf(ctx.Err()), "waiting for a token of GitHub")
	}
	defer func() { <-m.lock }()
	if m.value != "" && time.Now().Before(m.until) {
		return m.value, nil
	}
	value, until, err := mint()
	if err == nil {
		m.value, m.until = value, until
	}
	return value, err
}

// drop forgets a credential that was refused.
func (m *minted) drop(value string) {
	m.lock <- struct{}{}
	defer func() { <-m.lock }()
	if m.value == value {
		m.value = ""
	}
}

// credential returns what goes into the Authorization header of a call.
func (c *client) credential(ctx context.Context, who caller) (string, *minted, error) {
	switch who {
	case asToken:
		return c.token, nil, nil
	case asApp:
		value, err := c.assertion.get(ctx, c.assert)
		return value, nil, err
	}
	m := c.minted(tokenKey{installation: int64(who)})
	value, err := m.get(ctx, func() (string, time.Time, error) { return c.mint(ctx, int64(who), &github.InstallationTokenOptions{}) })
	return value, m, err
}

func (c *client) minted(k tokenKey) *minted {
	return c.tokens.Change(k, func(m *minted) *minted {
		if m == nil {
			m = &minted{lock: make(chan struct{}, 1)}
		}
		return m
	})
}

// assert makes, under the lock of the assertion, the token with which the App identifies itself: a JWT (contract
// C7). Its times are GitHub's, which refuses one that began later than now. The lock of the
// assertion is held.
func (c *client) assert() (string, time.Time, error) {
	now := time.Now()
	theirs := c.clock.At(now)
	c.assertion.ahead = theirs.Sub(now)
	claims, err := json.Marshal(map[string]any{
		"iat": theirs.Add(-assertionSkew).Unix(), "exp": theirs.Add(assertionLife).Unix(), "iss": c.appID,
	})
	if err != nil {
		return "", time.Time{}, fault.Wrap(err, fault.Internal, "writing the App's token")
	}
	part := base64.RawURLEncoding.EncodeToString
	text := part([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, c.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", time.Time{}, fault.Wrap(err, fault.Internal, "signing the App's token")
	}
	return text + "." + part(signature), now.Add(assertionLife - tokenMargin), nil
}

// outOfTime learns what time it is from the refusal of an assertion, and reports whether
// one that is made now is another: of a time that this refusal, or an answer before it, has
// told, or that of a call which was refused at the same moment.
func (c *client) outOfTime(refused string, resp *http.Response) bool {
	c.clock.Learn(resp)
	c.assertion.lock <- struct{}{}
	defer func() { <-c.assertion.lock }()
	now := time.Now()
	return c.assertion.value != refused || (c.clock.At(now).Sub(now)-c.assertion.ahead).Abs() >= assertionSkew/2
}

// mint asks for a token of an installation. A second one does no harm.
func (c *client) mint(ctx context.Context, installation int64, narrow *github.InstallationTokenOptions) (string, time.Time, error) {
	out, _, err := call(ctx, c, asApp, op{name: "making a token"}, func(g api) (*github.InstallationToken, *github.Response, error) {
		return g.Apps.CreateInstallationToken(g.ctx, installation, narrow)
	})
	if fault.Is(err, fault.NotFound) {
		err = &fault.Error{Kind: fault.Gone, Public: "The GitHub App is no longer installed there.", Err: err}
	}
	if err != nil {
		return "", time.Time{}, err
	}
	if !tokenForm.MatchString(out.GetToken()) {
		return "", time.Time{}, fault.Wrap(errNoToken, fault.Unavailable, "getting a token of an installation")
	}
	now := time.Now()
	left := out.GetExpiresAt().Sub(c.clock.At(now))
	return out.GetToken(), now.Add(max(left-tokenMargin, left/2)), nil
}

// callerFor returns whose credentials reach a repository.
func (c *client) callerFor(ctx context.Context, repo string) (caller, error) {
	if c.appID == "" {
		return asToken, nil
	}
	if id, ok := c.homes.Get(repo); ok && id > 0 {
		return caller(id), nil
	}
	out, _, err := call(ctx, c, asApp, op{name: "finding the App's installation"}, func(g api) (*github.Installation, *github.Response, error) {
		owner, name, _ := strings.Cut(repo, "/")
		return g.Apps.FindRepositoryInstallation(g.ctx, owner, name)
	})
	if fault.Is(err, fault.NotFound) {
		return 0, &fault.Error{Kind: fault.Gone, Public: "The GitHub App is not installed in " + repo + ".", Err: err}
	}
	if err != nil {
		return 0, err
	}
	if out.GetID() < 1 {
		return 0, fault.Wrap(errNoToken, fault.Unavailable, "finding the App's installation")
	}
	c.homes.Put(repo, out.GetID())
	return caller(out.GetID()), nil
}

// Token returns a token for git to clone, fetch and push one repository, given
// as "owner/repo", with the host in front or as the address that is cloned. A
// token of an App reaches that repository's contents and nothing else, and is
// good for at least a few minutes; ask again for each use. Another host than the
// adapter's is fault.Forbidden: no token may go there. A repository that the App
// is not installed in is fault.NotFound.
func (a *Adapter) Token(ctx context.Context, name string) (string, error) {
	repo, err := a.ownRepo(name)
	if err != nil {
		return "", err
	}
	return a.client.repoToken(ctx, repo)
}

// repoToken returns a token for a repository's contents.
func (c *client) repoToken(ctx context.Context, repo string) (string, error) {
	who, err := c.callerFor(ctx, repo)
	if fault.Is(err, fault.Gone) {
		err = &fault.Error{Kind: fault.NotFound, Err: err}
	}
	if err != nil {
		return "", err
	}
	if who == asToken {
		return c.token, nil
	}
	return c.minted(tokenKey{installation: int64(who), repo: repo}).get(ctx, func() (string, time.Time, error) {
		out, err := c.askRepository(ctx, repo)
		if err != nil {
			return "", time.Time{}, err
		}
		if out.GetID() < 1 {
			return "", time.Time{}, fault.Wrap(errNoID, fault.Unavailable, "reading a repository")
		}
		return c.mint(ctx, int64(who), &github.InstallationTokenOptions{
			RepositoryIDs: []int64{out.GetID()}, Permissions: &github.InstallationPermissions{Contents: new("write")},
		})
	})
}

// account is the bot's own account.
type account struct {
	client *client
	self   *platform.Self[identity]
	poll   bool
	log    *slog.Logger
}

// whoami returns the bot's account, asking GitHub the first time.
func (a *account) whoami(ctx context.Context) (identity, error) { return a.self.Get(ctx, a.askSelf) }

func (a *account) askSelf(ctx context.Context) (identity, error) {
	var me identity
	if a.client.appID != "" {
		out, _, err := call(ctx, a.client, asApp, op{name: "reading the App"}, func(g api) (*github.App, *github.Response, error) { return g.Apps.Get(g.ctx, "") })
		if err != nil {
			return me, err
		}
		me = identity{id: out.GetID(), login: out.GetSlug() + "[bot]", slug: out.GetSlug(), permissions: granted(out.GetPermissions()), events: out.Events}
	} else {
		out, resp, err := call(ctx, a.client, asToken, op{name: "reading the account"}, func(g api) (*github.User, *github.Response, error) { return g.Users.Get(g.ctx, "") })
		if err != nil {
			return me, err
		}
		me = identity{id: out.GetID(), login: out.GetLogin(), scopes: scopesOf(resp.Header)}
	}
	if me.id < 1 || me.login == "" {
		return me, fault.Wrap(errNoToken, fault.Unavailable, "finding out who the bot is")
	}
	a.self.Store(&me)
	return me, nil
}

// granted returns permissions by name with their level.
func granted(p *github.InstallationPermissions) map[string]string {
	all := make(map[string]string)
	if raw, err := json.Marshal(p); err == nil {
		_ = json.Unmarshal(raw, &all) // it is an object of texts
	}
	return all
}

// scopesOf returns the scopes of a classic token. Tokens of other kinds have no
// such header.
func scopesOf(h http.Header) []string {
	return strings.FieldsFunc(h.Get("X-Oauth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
}

// missingPermissions names, sorted, what the manifest asks for and GitHub has
// not granted: permissions like "issues: write", events like "event: issues",
// and for a classic personal token "scope: repo". It is empty before GitHub was
// asked, and for fine-grained tokens, of which GitHub tells nothing.
func (a *account) missingPermissions() []string {
	me := a.self.Load()
	if me == nil {
		return nil
	}
	var missing []string
	if a.client.appID == "" {
		if len(me.scopes) > 0 && !slices.Contains(me.scopes, "repo") && !slices.Contains(me.scopes, "public_repo") {
			missing = append(missing, "scope: repo")
		}
		return missing
	}
	missing = lacking(me.permissions)
	if !a.poll {
		for _, e := range Events() {
			if !slices.Contains(me.events, e) {
				missing = append(missing, "event: "+e)
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// lacking names, sorted, the permissions that the manifest asks for and that are missing.
func lacking(granted map[string]string) (missing []string) {
	for name, level := range Permissions() {
		if levelOf(granted[name]) < levelOf(level) {
			missing = append(missing, name+": "+level)
		}
	}
	slices.Sort(missing)
	return missing
}

// excess names, sorted, what the App may do and the bot never does.
func (a *account) excess() []string {
	me := a.self.Load()
	if me == nil {
		return nil
	}
	var more []string
	asked := Permissions()
	for name, level := range me.permissions {
		if levelOf(level) > levelOf(asked[name]) {
			more = append(more, name+": "+level)
		}
	}
	slices.Sort(more)
	return more
}

func (a *account) warnPermissions(ctx context.Context) {
	if missing := a.missingPermissions(); len(missing) > 0 {
		a.log.WarnContext(ctx, "the github account lacks permissions; grant them in its settings, and accept them where the App is installed", "missing", missing)
	}
	if more := a.excess(); len(more) > 0 {
		a.log.WarnContext(ctx, "the github app may do more than the bot needs", "excess", more)
	}
}

// isOurs reports whether the bot wrote a comment.
func (a *account) isOurs(me identity, c *comment) bool {
	if a.client.appID == "" {
		return c.GetUser().GetID() == me.id
	}
	return a.isOurApp(c.Via) || c.GetUser().GetType() == "Bot" && c.GetUser().GetLogin() == me.login
}

// isOurApp reports whether something was written through the bot's own App.
func (a *account) isOurApp(via *app) bool {
	return via != nil && a.client.appID != "" && (strconv.FormatInt(via.ID, 10) == a.client.appID || via.ClientID == a.client.appID)
}

var (
	errNoPEM = errors.New("is not a private key in PEM: it begins with -----BEGIN, and its line breaks must be there")
	errNoRSA = errors.New("is not a usable RSA key: download a new one from the app's page")
)

// parseKeyPEM reads the private key of an App. Its errors say what is wrong with the option.
func parseKeyPEM(text string) (*rsa.PrivateKey, error) {
	// Keys in environment files often have their line ends written out.
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, `\n`, "\n")
	}
	block, _ := pem.Decode([]byte(strings.TrimSpace(text) + "\n"))
	if block == nil {
		return nil, errNoPEM
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	other, _ := x509.ParsePKCS8PrivateKey(block.Bytes) // its error could hold parts of the key
	if key, ok := other.(*rsa.PrivateKey); ok {
		return key, nil
	}
	return nil, errNoRSA
}

var errNoToken = fmt.Errorf("the answer lacks what was asked for")
