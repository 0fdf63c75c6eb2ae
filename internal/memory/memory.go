// Package memory is what the bot remembers of people: facts, which hold until
// they are corrected or forgotten, and episodes, which expire. It has the types
// and the rules of seed 004 and does no I/O; package store keeps the rows.
//
// A memory belongs to one person, named as the audit log does ("telegram/42"),
// and holds everywhere or in one codebase. It is never shown to anybody else.
package memory

import (
	"cmp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"remote-agent/internal/fault"
)

// Thresholds and limits of seed 004.
const (
	FactThreshold    = 0.85 // from here on a fact is the same one
	EpisodeThreshold = 0.95 // from here on an episode is the same one
	RecallThreshold  = 0.35 // from here on a memory has to do with a question
	RecallLimit      = 10

	EpisodeLife = 30 * 24 * time.Hour
)

// Limits of our own.
const (
	MaxText    = 2000 // runes of one memory
	MaxHistory = 20   // earlier texts that are kept of a fact
	MaxSources = 100  // sources that are kept of one memory, the newest
	maxPerson  = 300  // bytes
	maxKey     = 200  // bytes
	maxModel   = 200  // bytes
)

// Kind says which of the two a memory is.
type Kind string

// The kinds.
const (
	Semantic Kind = "semantic" // a fact
	Episodic Kind = "episodic" // something that happened
)

// Category says what a fact is about.
type Category string

// The categories of seed 004. The empty one means that nobody said.
const (
	Preference   Category = "preference"
	General      Category = "fact"
	Skill        Category = "skill"
	Relationship Category = "relationship"
)

// ParseCategory returns the category of a name; the empty name is none. Any other
// name is fault.Invalid.
func ParseCategory(name string) (Category, error) {
	switch c := Category(strings.ToLower(strings.TrimSpace(name))); c {
	case "", Preference, General, Skill, Relationship:
		return c, nil
	}
	return "", fault.Newf(fault.Invalid, "There is no category %q; use preference, fact, skill or relationship.", name)
}

// Origin says who had something remembered.
type Origin string

// The origins.
const (
	ByPerson    Origin = "person"    // the person said so with a command
	ByAssistant Origin = "assistant" // the assistant chose to, with a tool
	Learned     Origin = "learned"   // taken from a conversation afterwards
)

// Operation says what storing a memory did. The values are those of seed 004.
type Operation string

// The operations.
const (
	InsertNew     Operation = "INSERT_NEW"
	UpdateSimilar Operation = "UPDATE_SIMILAR" // a fact that was there took the new text
	SkipDuplicate Operation = "SKIP_DUPLICATE" // an episode that was there was confirmed
)

// Scope is whose memory something is, and where it holds.
type Scope struct {
	Person   string // "telegram/42"; at most 300 bytes
	Codebase string // id of a codebase; empty: everywhere
}

// Embedding is a vector with the model that made it. Vectors of two models cannot
// be compared. The zero value is no embedding.
type Embedding struct {
	Vector Vector
	Model  string
}

// IsZero reports whether there is no vector.
func (e Embedding) IsZero() bool { return len(e.Vector) == 0 }

// refusedMark begins what RefusedBy returns. No model has such a name.
const refusedMark = "!"

// RefusedBy returns what is stored with a text in the place of the name of a model that
// refuses to embed it.
func RefusedBy(model string) string {
	name := refusedMark + model
	return strings.ToValidUTF8(name[:min(len(name), maxModel)], "")
}

// Refuser returns the name of the model that refused a text, from what is stored with it;
// ok is false if none did.
func Refuser(stored string) (model string, ok bool) { return strings.CutPrefix(stored, refusedMark) }

func (e Embedding) check() error {
	switch {
	case len(e.Vector) == 0: // not nil alone: an empty vector is no vector either
		return nil
	case e.Model == "" || len(e.Model) > maxModel:
		return fault.New(fault.Invalid, "An embedding needs the name of the model that made it, of at most 200 bytes.")
	}
	return e.Vector.Check()
}

// Fact is a fact to be learned.
type Fact struct {
	Scope
	RunID     string // the turn, a UUID
	Text      string
	Category  Category // empty leaves that of a fact that is there
	Origin    Origin   // empty is ByAssistant
	Embedding Embedding
	Events    []int64 // ids of episodes that the fact was taken from

	// Threshold from which on a fact is the same one; zero is FactThreshold.
	Threshold float64

	// Correct says that the text is meant to replace the one that is there.
	Correct bool

	// Judged is how the text relates to one that is there, if that was found out.
	Judged Judgment

	// Key makes learning the same text again under the same key do nothing, so
	// that it may be repeated after a crash. Empty for none.
	Key string

	Now time.Time // zero is the time of the call
}

// Prepare returns f with defaults filled in and its text in the stored form.
// fault.Invalid says what is wrong with it.
func (f Fact) Prepare() (Fact, error) {
	var err error
	if f.Text, err = prepare(f.Scope, f.RunID, f.Text, f.Key, f.Embedding); err != nil {
		return f, err
	}
	if f.Category, err = ParseCategory(string(f.Category)); err != nil {
		return f, err
	}
	f.Threshold = cmp.Or(f.Threshold, FactThreshold)
	f.Origin = cmp.Or(f.Origin, ByAssistant)
	f.Now = moment(f.Now)
	return f, checkThreshold(f.Threshold)
}

// Episode is something that happened, to be kept for a while.
type Episode struct {
	Scope
	RunID     string // the turn, a UUID
	Text      string
	Origin    Origin // empty is ByAssistant
	Embedding Embedding
	Sources   []string

	Confidence float64 // of a new one, above 0 and at most 10; zero is 1
	Threshold  float64 // zero is EpisodeThreshold
	Key        string  // as in Fact
	Now        time.Time
}

// Prepare returns e with defaults filled in and its text in the stored form.
// fault.Invalid says what is wrong with it.
func (e Episode) Prepare() (Episode, error) {
	var err error
	if e.Text, err = prepare(e.Scope, e.RunID, e.Text, e.Key, e.Embedding); err != nil {
		return e, err
	}
	e.Threshold = cmp.Or(e.Threshold, EpisodeThreshold)
	e.Confidence = cmp.Or(e.Confidence, firstEpisodeConfidence)
	if !(e.Confidence > 0 && e.Confidence <= maxEpisodeConfidence) {
		return e, fault.Newf(fault.Invalid, "The confidence of an episode is above 0 and at most %g, not %g.", maxEpisodeConfidence, e.Confidence)
	}
	e.Origin = cmp.Or(e.Origin, ByAssistant)
	e.Now = moment(e.Now)
	return e, checkThreshold(e.Threshold)
}

func prepare(s Scope, run, text, key string, e Embedding) (string, error) {
	switch {
	case s.Person == "" || len(s.Person) > maxPerson:
		return "", fault.Newf(fault.Invalid, "A memory needs a person, named in at most %d bytes.", maxPerson)
	case run == "":
		return "", fault.New(fault.Invalid, "A memory needs the id of the turn that it comes from.")
	case len(key) > maxKey:
		return "", fault.Newf(fault.Invalid, "The key of a memory has %d bytes; at most %d are taken.", len(key), maxKey)
	}
	text, err := CleanText(text)
	if err != nil {
		return "", err
	}
	return text, e.check()
}

// CleanText returns a text as it is stored: one line, valid UTF-8. A text that is
// empty or too long is fault.Invalid.
func CleanText(text string) (string, error) {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", " "), "\uFFFD")), " ")
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		return "", fault.New(fault.Invalid, "Nothing to remember: the text is empty.")
	case n > MaxText:
		return "", fault.Newf(fault.Invalid, "That is %d characters; a memory can have at most %d. Shorten it, or put it in a file.", n, MaxText)
	}
	return text, nil
}

// Visible takes out of a text what nobody sees of it, but for characters that join others:
// a model reads it, and the person whose memory it is could not.
func Visible(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), r == '\u200c', r == '\u200d':
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co), r >= 0xE0100 && r <= 0xE01EF: // the last ones choose forms of others
			return -1
		}
		return r
	}, text)
	if strings.Trim(text, "\u200c\u200d ") == "" {
		return ""
	}
	return text
}

func checkThreshold(t float64) error {
	if !(t > 0 && t <= 1) { // false for NaN as well
		return fault.Newf(fault.Invalid, "A threshold is above 0 and at most 1, not %g.", t)
	}
	return nil
}

// moment is t in what the databases keep: UTC milliseconds.
func moment(t time.Time) time.Time {
	if t.IsZero() {
		t = time.Now()
	}
	return t.UTC().Truncate(time.Millisecond)
}

// Memory is a stored fact or episode.
type Memory struct {
	Kind Kind
	ID   int64 // within its kind
	Scope
	Number      int64 // what the person calls it; unique for them and not used again
	RunID       string
	Text        string
	Category    Category // of facts
	Origin      Origin
	Confidence  float64 // 0 to 0.99 of facts, 0 to 10 of episodes; people see Certainty
	AccessCount int64
	Events      []int64   // of facts
	Sources     []string  // of episodes
	History     []Earlier // of facts, oldest first
	CreatedAt   time.Time
	UpdatedAt   time.Time
	ExpiresAt   time.Time // of episodes

	Hash string // of the text, see Hash
	Key  string // of what changed it last
}

// Earlier is what a fact said before.
type Earlier struct {
	Text       string    `json:"text"`
	Confidence float64   `json:"confidence"`
	Until      time.Time `json:"until"`
	Why        string    `json:"why"` // "rephrased", "replaced", "contradicted" or "corrected"
}

// Outcome is what storing a memory did.
type Outcome struct {
	Operation  Operation
	Similarity float64 // to what was there; 0 for a new one
	Memory     Memory  // as it is now

	// Matched is the text that was there before; empty for a new memory.
	Matched string

	// Contradicted is set if the new text says otherwise than the old one.
	Contradicted bool

	// Repeated is set if the same key had done this before: nothing changed.
	Repeated bool
}

// Query asks what is remembered.
type Query struct {
	// Scope is who asks, and where: memories that hold everywhere are found, and
	// those of Codebase if it is set.
	Scope

	// Text is searched by its words where a memory or the query has no embedding.
	Text      string
	Embedding Embedding

	Threshold float64 // of similarity by embedding; zero is RecallThreshold
	Limit     int     // zero is RecallLimit
	Now       time.Time
}

// Prepare returns q with defaults filled in; fault.Invalid says what is wrong
// with it.
func (q Query) Prepare() (Query, error) {
	if q.Person == "" {
		return q, fault.New(fault.Invalid, "Say whose memories are searched.")
	}
	q.Threshold = cmp.Or(q.Threshold, RecallThreshold)
	q.Limit = cmp.Or(q.Limit, RecallLimit)
	if q.Limit < 0 || q.Limit > 1000 {
		return q, fault.Newf(fault.Invalid, "At most 1000 memories are recalled at once, not %d.", q.Limit)
	}
	q.Now = moment(q.Now)
	if err := q.Embedding.check(); err != nil {
		return q, err
	}
	return q, checkThreshold(q.Threshold)
}

// Match is a memory that was recalled.
type Match struct {
	Memory
	Similarity float64 // 0 to 1: by embedding, or the share of the query's words
}
