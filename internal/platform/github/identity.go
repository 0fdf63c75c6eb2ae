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
	"fmt"
	"net/http"
	"net/url"
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
	until time.Time // to be replaced then
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
func (a *Adapter) credential(ctx context.Context, who caller) (string, *minted, error) {
	switch who {
	case asToken:
		return a.cfg.Token, nil, nil
	case asApp:
		value, err := a.assertion.get(ctx, a.assert)
		return value, nil, err
	}
	m := a.minted(tokenKey{installation: int64(who)})
	value, err := m.get(ctx, func() (string, time.Time, error) { return a.mint(ctx, int64(who), &github.InstallationTokenOptions{}) })
	return value, m, err
}

func (a *Adapter) minted(k tokenKey) *minted {
	return a.tokens.Change(k, func(m *minted) *minted {
		if m == nil {
			m = &minted{lock: make(chan struct{}, 1)}
		}
		return m
	})
}

// assert makes the token with which the App identifies itself: a JWT (contract
// C7). Its times are GitHub's, which refuses one that began later than now.
func (a *Adapter) assert() (string, time.Time, error) {
	now := time.Now()
	theirs := a.clock.At(now)
	claims, err := json.Marshal(map[string]any{
		"iat": theirs.Add(-assertionSkew).Unix(), "exp": theirs.Add(assertionLife).Unix(), "iss": a.cfg.AppID,
	})
	if err != nil {
		return "", time.Time{}, fault.Wrap(err, fault.Internal, "writing the App's token")
	}
	part := base64.RawURLEncoding.EncodeToString
	text := part([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", time.Time{}, fault.Wrap(err, fault.Internal, "signing the App's token")
	}
	return text + "." + part(signature), now.Add(assertionLife - tokenMargin), nil
}

// mint asks for a token of an installation. A second one does no harm.
func (a *Adapter) mint(ctx context.Context, installation int64, narrow *github.InstallationTokenOptions) (string, time.Time, error) {
	out, _, err := call(ctx, a, asApp, op{name: "making a token"}, func(g api) (*github.InstallationToken, *github.Response, error) {
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
	left := out.GetExpiresAt().Sub(now)
	return out.GetToken(), now.Add(max(left-tokenMargin, left/2)), nil
}

// callerFor returns whose credentials reach a repository.
func (a *Adapter) callerFor(ctx context.Context, repo string) (caller, error) {
	if a.cfg.AppID == "" {
		return asToken, nil
	}
	if id, ok := a.homes.Get(repo); ok && id > 0 {
		return caller(id), nil
	}
	out, _, err := call(ctx, a, asApp, op{name: "finding the App's installation"}, func(g api) (*github.Installation, *github.Response, error) {
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
	a.homes.Put(repo, out.GetID())
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
	who, err := a.callerFor(ctx, repo)
	if fault.Is(err, fault.Gone) {
		err = &fault.Error{Kind: fault.NotFound, Err: err}
	}
	if err != nil {
		return "", err
	}
	if who == asToken {
		return a.cfg.Token, nil
	}
	return a.minted(tokenKey{installation: int64(who), repo: repo}).get(ctx, func() (string, time.Time, error) {
		out, err := a.askRepository(ctx, repo)
		if err != nil {
			return "", time.Time{}, err
		}
		if out.GetID() < 1 {
			return "", time.Time{}, fault.Wrap(errNoID, fault.Unavailable, "reading a repository")
		}
		return a.mint(ctx, int64(who), &github.InstallationTokenOptions{
			RepositoryIDs: []int64{out.GetID()}, Permissions: &github.InstallationPermissions{Contents: new("write")},
		})
	})
}

func (a *Adapter) askRepository(ctx context.Context, repo string) (*github.Repository, error) {
	out, _, err := inRepo(ctx, a, repo, op{name: "reading a repository"}, func(g api) (*github.Repository, *github.Response, error) {
		return g.Repositories.Get(g.ctx, g.owner, g.repo)
	})
	return out, err
}

// ownRepo returns the name of a repository on the adapter's GitHub.
func (a *Adapter) ownRepo(repository string) (string, error) {
	rest := repository
	if strings.HasPrefix(rest, "/") {
		return "", fault.Newf(fault.Invalid, "%q is a folder, not a repository on GitHub.", platform.Cut(rest, 100))
	}
	if strings.Contains(rest, "://") {
		u, err := url.Parse(rest)
		if err != nil || u.Scheme != a.web.Scheme || u.User != nil {
			return "", errForeignHost()
		}
		rest = u.Host + u.Path
	}
	rest = strings.TrimSuffix(strings.Trim(rest, "/"), ".git")
	if host, path, ok := strings.Cut(rest, "/"); ok && strings.Contains(path, "/") {
		if !strings.EqualFold(host, a.web.Host) {
			return "", errForeignHost()
		}
		rest = path
	}
	repo, ok := repoName(rest)
	if !ok {
		return "", fault.Newf(fault.Invalid, "%q is not a repository on GitHub.", platform.Cut(rest, 100))
	}
	if len(a.only) > 0 && !a.only[repo] {
		return "", fault.Newf(fault.Forbidden, "%s is not among the repositories that the bot works in.", repo)
	}
	return repo, nil
}

func errForeignHost() error {
	return fault.New(fault.Forbidden, "That repository is not on the GitHub that the bot is connected to.")
}

// whoami returns the bot's account, asking GitHub the first time.
func (a *Adapter) whoami(ctx context.Context) (identity, error) { return a.self.Get(ctx, a.askSelf) }

func (a *Adapter) askSelf(ctx context.Context) (identity, error) {
	var me identity
	if a.cfg.AppID != "" {
		out, _, err := call(ctx, a, asApp, op{name: "reading the App"}, func(g api) (*github.App, *github.Response, error) { return g.Apps.Get(g.ctx, "") })
		if err != nil {
			return me, err
		}
		me = identity{id: out.GetID(), login: out.GetSlug() + "[bot]", slug: out.GetSlug(), permissions: granted(out.GetPermissions()), events: out.Events}
	} else {
		out, resp, err := call(ctx, a, asToken, op{name: "reading the account"}, func(g api) (*github.User, *github.Response, error) { return g.Users.Get(g.ctx, "") })
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

// Check implements platform.Checker. After it MissingPermissions can tell.
func (a *Adapter) Check(ctx context.Context) (platform.Account, error) {
	me, err := a.askSelf(ctx)
	if err != nil {
		return platform.Account{}, err
	}
	if err := a.resolveAllowed(ctx); err != nil {
		return platform.Account{}, err
	}
	a.warnPermissions(ctx)
	return platform.Account{ID: a.account(), Name: "@" + me.login}, nil
}

// MissingPermissions names, sorted, what the manifest asks for and GitHub has
// not granted: permissions like "issues: write", events like "event: issues",
// and for a classic personal token "scope: repo". It is empty before GitHub was
// asked, and for fine-grained tokens, of which GitHub tells nothing.
func (a *Adapter) MissingPermissions() []string {
	me := a.self.Load()
	if me == nil {
		return nil
	}
	var missing []string
	if a.cfg.AppID == "" {
		if len(me.scopes) > 0 && !slices.Contains(me.scopes, "repo") && !slices.Contains(me.scopes, "public_repo") {
			missing = append(missing, "scope: repo")
		}
		return missing
	}
	for name, level := range Permissions() {
		if levelOf(me.permissions[name]) < levelOf(level) {
			missing = append(missing, name+": "+level)
		}
	}
	if !a.cfg.Poll {
		for _, e := range Events() {
			if !slices.Contains(me.events, e) {
				missing = append(missing, "event: "+e)
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// excess names what the App may do and the bot never does.
func (me identity) excess() []string {
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

func (a *Adapter) warnPermissions(ctx context.Context) {
	if missing := a.MissingPermissions(); len(missing) > 0 {
		a.log.WarnContext(ctx, "the github account lacks permissions; grant them in its settings, and accept them where the App is installed", "missing", missing)
	}
	if me := a.self.Load(); me != nil {
		if more := me.excess(); len(more) > 0 {
			a.log.WarnContext(ctx, "the github app may do more than the bot needs", "excess", more)
		}
	}
}

// resolveAllowed turns the logins of Config.Allowed into numbers, which nobody
// can take over.
func (a *Adapter) resolveAllowed(ctx context.Context) error {
	if a.allowed.Load() != nil {
		return nil
	}
	ids, err := a.numbers(ctx, a.cfg.Allowed)
	if err != nil {
		return err
	}
	a.allowed.CompareAndSwap(nil, &ids) // or it was set to others meanwhile
	return nil
}

// SetAllowed replaces Config.Allowed. An error changes nothing: a fault.Invalid that
// names the option if a login is nobody's, else what kept GitHub from telling.
func (a *Adapter) SetAllowed(ctx context.Context, logins []string) error {
	ids, err := a.numbers(ctx, logins)
	if err != nil {
		return err
	}
	a.allowed.Store(&ids)
	a.narrowed.Store(len(logins) > 0)
	return nil
}

// numbers returns the numbers of accounts.
func (a *Adapter) numbers(ctx context.Context, logins []string) (map[int64]bool, error) {
	ids := make(map[int64]bool)
	who := asToken
	if a.cfg.AppID != "" && len(logins) > 0 {
		var err error
		if who, err = a.anyInstallation(ctx); err != nil {
			return nil, err
		}
	}
	for _, entry := range logins {
		if id, err := strconv.ParseInt(entry, 10, 64); err == nil {
			ids[id] = true
			continue
		}
		out, _, err := call(ctx, a, who, op{name: "reading an account"}, func(g api) (*github.User, *github.Response, error) { return g.Users.Get(g.ctx, entry) })
		switch {
		case fault.Is(err, fault.NotFound), err == nil && out.GetID() < 1:
			return nil, fault.Newf(fault.Invalid, "GITHUB_ALLOWED_LOGINS: there is no account %q on GitHub", entry)
		case err != nil:
			return nil, err
		case out.GetType() != "User":
			return nil, fault.Newf(fault.Invalid, "GITHUB_ALLOWED_LOGINS: %q is not a person's account", entry)
		}
		ids[out.GetID()] = true
		a.log.InfoContext(ctx, "github: an allowed login was turned into its number; only the number counts", "login", entry, "id", out.GetID())
	}
	return ids, nil
}

// anyInstallation returns an installation, for calls about no repository.
func (a *Adapter) anyInstallation(ctx context.Context) (caller, error) {
	all, err := a.installations(ctx)
	if err != nil {
		return 0, err
	}
	if len(all) == 0 {
		return 0, fault.New(fault.Invalid, "GITHUB_ALLOWED_LOGINS: a login cannot be looked up while the GitHub App is installed nowhere; use the account's number, or install the App")
	}
	return caller(all[0].GetID()), nil
}

// parseKeyPEM reads the private key of an App.
func parseKeyPEM(text string) (*rsa.PrivateKey, error) {
	bad := fault.New(fault.Invalid, "GITHUB_APP_PRIVATE_KEY is not the RSA key, in PEM, that GitHub made for the App")
	// Keys in environment files often have their line ends written out.
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, `\n`, "\n")
	}
	block, _ := pem.Decode([]byte(strings.TrimSpace(text) + "\n"))
	if block == nil {
		return nil, bad
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	any8, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, bad //nolint:nilerr // it could hold parts of the key
	}
	key, ok := any8.(*rsa.PrivateKey)
	if !ok {
		return nil, bad
	}
	return key, nil
}

var errNoToken = fmt.Errorf("the answer lacks what was asked for")
