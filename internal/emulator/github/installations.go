package github

import (
	"maps"
	"slices"
	"time"
)

// installation is the App in an account.
type installation struct {
	id          int64
	account     *user
	repos       []*repo
	permissions map[string]string
	created     time.Time
}

func (i *installation) add(r *repo) {
	if !slices.Contains(i.repos, r) {
		i.repos = append(i.repos, r)
	}
}

// installationOf returns the installation of an account, made if there is none.
func (w *world) installationOf(account *user) *installation {
	for _, i := range w.installations {
		if i.account == account {
			return i
		}
	}
	i := &installation{id: w.id(), account: account, permissions: maps.Clone(w.opts.App.Permissions), created: w.now()}
	w.installations = append(w.installations, i)
	return i
}

// SetInstallationPermissions changes what the installation of an account may do.
// Tokens that exist change too. Nil is what the App asks for.
func (s *Server) SetInstallationPermissions(account string, permissions map[string]string) {
	w := s.world
	defer w.writing()()
	if permissions == nil {
		permissions = w.opts.App.Permissions
	}
	w.installationOf(w.know(account)).permissions = maps.Clone(permissions)
}

// Install adds repositories to the App's installation in their account, as its
// administrator does, and makes the installation if there is none.
func (s *Server) Install(repoNames ...string) Sent {
	w := s.world
	defer w.writing()()
	var sent Sent
	for _, name := range repoNames {
		r := w.mustRepo(name)
		before := len(w.installations)
		i := w.installationOf(r.owner)
		i.add(r)
		if len(w.installations) > before {
			sent.Deliveries = append(sent.Deliveries, s.tellApp(i, "installation", "created", obj{"repositories": shortRepos(r)}))
		} else {
			sent.Deliveries = append(sent.Deliveries, s.tellApp(i, "installation_repositories", "added", obj{
				"repositories_added": shortRepos(r), "repositories_removed": []any{}, "repository_selection": "selected",
			}))
		}
	}
	return sent
}

// Uninstall takes the App out of an account. Its tokens are worthless at once.
func (s *Server) Uninstall(account string) Sent {
	w := s.world
	defer w.writing()()
	var sent Sent
	u := w.know(account)
	w.installations = slices.DeleteFunc(w.installations, func(i *installation) bool {
		if i.account == u {
			sent.Deliveries = append(sent.Deliveries, s.tellApp(i, "installation", "deleted", obj{"repositories": shortRepos(i.repos...)}))
		}
		return i.account == u
	})
	return sent
}

func shortRepos(list ...*repo) []any {
	return rendered(list, func(r *repo) obj {
		return fields{{"id", r.id}, {"node_id", node("R", r.id)}, {"name", r.name}, {"full_name", r.fullName()}, {"private", r.private}}.Object()
	})
}

// tellApp sends an event about an installation, which no App can unsubscribe
// from.
func (h *webhooks) tellApp(i *installation, event, action string, fields obj) string {
	body := obj{"action": action, "installation": h.show.installation(i), "requester": nil, "sender": h.show.user(i.account)}
	maps.Copy(body, fields)
	return h.enlist(h.app, event, action, nil, body)
}
