package profile

import (
	"slices"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/pattern"
)

// name is what profiles and groups are called: it is typed in chats, stands in
// commands and file names.
var name = pattern.Lazy(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// Ref is what a person typed to name a profile.
type Ref struct {
	Group string // empty: any, the default group first
	Name  string
}

// ParseRef reads "name" or "group/name". Case does not count: phones begin a line
// with a capital. What cannot be a name is a fault.Invalid.
func ParseRef(text string) (Ref, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	group, rest, ok := strings.Cut(text, "/")
	if !ok {
		group, rest = "", text
	}
	if !name.MatchString(rest) || ok && !name.MatchString(group) {
		return Ref{}, fault.Newf(fault.Invalid, "%q is not a valid profile name; use one like reviewer or team/reviewer.", short(text))
	}
	return Ref{Group: group, Name: rest}, nil
}

// String is the form that ParseRef reads.
func (r Ref) String() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Group + "/" + r.Name
}

// Choose finds the profile that r means among those of its name: the one of its
// group, else that of the default group, else the only one. all names every
// profile there is, for the error: fault.NotFound with the nearest name, or
// fault.Conflict if several groups have one.
func (r Ref) Choose(named []Profile, all []string) (Profile, error) {
	var others []Profile
	for _, p := range named {
		switch {
		case p.Name != r.Name, r.Group != "" && p.Group != r.Group:
		case p.Group == r.Group, r.Group == "" && p.Group == DefaultGroup:
			return p, nil
		default:
			others = append(others, p)
		}
	}
	switch len(others) {
	case 0:
		return Profile{}, r.missing(all)
	case 1:
		return others[0], nil
	}
	titles := lists.Map(others, Profile.Title)
	return Profile{}, fault.Newf(fault.Conflict, "Several groups have a profile %s. Choose one: %s.", r.Name, strings.Join(titles, " or "))
}

func (r Ref) missing(all []string) error {
	text := "There is no profile " + r.String() + "."
	candidates := slices.Clone(all)
	for _, title := range all { // a name may be typed without its group
		if _, bare, ok := strings.Cut(title, "/"); ok && r.Group == "" {
			candidates = append(candidates, bare)
		}
	}
	switch near, ok := command.Nearest(r.String(), candidates); {
	case ok:
		text += " Did you mean " + near + "?"
	case len(all) == 0:
		text += " There are none yet; create one with `bot agent create`."
	case len(all) <= 10:
		text += " There is: " + strings.Join(all, ", ") + "."
	}
	return fault.New(fault.NotFound, text)
}

// CheckGroup checks the name of a group.
func CheckGroup(group string) error {
	if !name.MatchString(group) {
		return fault.Newf(fault.Invalid, "%q is not a valid group name; use lowercase letters, digits, dots, dashes and underscores.", short(group))
	}
	return nil
}

// short keeps a foreign text on one line of an error.
func short(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if runes := []rune(s); len(runes) > 50 {
		return string(runes[:49]) + "…"
	}
	return s
}
