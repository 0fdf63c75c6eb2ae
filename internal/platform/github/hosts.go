package github

import "remote-agent/internal/messages"

// Hosts implements platform.PullRequester: whether a repository, by its address
// for git, is on the adapter's GitHub and among those that the bot works in.
func (a *Adapter) Hosts(address string) bool {
	_, err := a.ownRepo(address)
	return err == nil
}

// RepositoryID implements platform.PullRequester: "owner/repo", without an issue.
// It is empty for a repository elsewhere.
func (a *Adapter) RepositoryID(address string) string {
	repo, err := a.ownRepo(address)
	if err != nil {
		return ""
	}
	return repo
}

// pullPlace reads the key of a conversation, or what RepositoryID returned: then
// the number is zero.
func pullPlace(key messages.ConversationKey) (place, error) {
	if repo, ok := repoName(key.ID); ok && key.Platform == Name {
		return place{repo: repo}, nil
	}
	return parseKey(key)
}
