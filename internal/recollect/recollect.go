// Package recollect is what models and turns do with memory: tools to remember,
// correct and forget, what is recalled before a turn, and the care of it in the
// background. The chat commands about it are in package chat.
//
// Whose memory it is follows from who speaks: there is no way to name another
// person. The rules are in package memory. It names no platform and no database.
package recollect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// Storage keeps memories.
type Storage interface {
	// InTx runs fn in one transaction; fn may run more than once.
	InTx(ctx context.Context, fn func(tx Tx) error) error

	// InRead runs fn in a read-only snapshot.
	InRead(ctx context.Context, fn func(tx Tx) error) error

	// ReadOnce is InRead for an fn that asks one thing.
	ReadOnce(ctx context.Context, fn func(tx Tx) error) error
}

// Tx is one transaction of a Storage. Package store implements it and says more
// about each method.
type Tx interface {
	UpsertFact(ctx context.Context, f memory.Fact) (memory.Outcome, error)
	CorrectFact(ctx context.Context, number int64, f memory.Fact) (memory.Outcome, error)
	ForgetMemory(ctx context.Context, person string, number int64) (memory.Memory, error)
	Recallable(ctx context.Context, person string, now time.Time) (bool, error)
	Recall(ctx context.Context, q memory.Query) ([]memory.Match, error)
	Standing(ctx context.Context, s memory.Scope, limit int) ([]memory.Memory, error)
	BareMemories(ctx context.Context, model string, limit int, now time.Time) ([]memory.Memory, error)
	SaveEmbedding(ctx context.Context, m memory.Memory, e memory.Embedding) error
	RefuseEmbedding(ctx context.Context, m memory.Memory, model string) error
	SweepMemories(ctx context.Context, now time.Time, limit int) (int64, error)
	SweepLinkCodes(ctx context.Context, now, since time.Time) error
	IndexWords(ctx context.Context, limit int) (int, error)
	Audit(ctx context.Context, e sessions.AuditEntry) error
}

// Embedder makes vectors of texts. Vectors of one Model can be compared.
type Embedder interface {
	Model() string
	Embed(ctx context.Context, texts []string) ([]memory.Vector, error)

	// EmbedEach is Embed where one text does not depend on another: it returns nil in
	// the place of those that the model refuses for what they are.
	EmbedEach(ctx context.Context, texts []string) ([]memory.Vector, error)
}

// Config configures a Service.
type Config struct {
	Storage  Storage
	Embedder Embedder // nil: memories are found by their words

	// Redact takes secrets out of a text; what it changes is not remembered. Nil
	// takes out nothing.
	Redact func(string) string

	// Judge returns how a fact that was stated in entry relates to the one whose
	// place it would take, if that can be found out in a few seconds. Nil leaves it
	// to rules.
	Judge func(ctx context.Context, entry sessions.Entry, f memory.Fact) memory.Judgment

	// Tokens is about how much of a request memories may be; default 600.
	Tokens int

	// Patience is how long a turn waits for an embedding; default 150 ms.
	Patience time.Duration

	Now func() time.Time // default time.Now
	Log *slog.Logger
}

// Service is memory for people and models. It is safe for concurrent use.
type Service struct {
	config Config
	slow   atomic.Bool // the last embedding took longer than a turn waits
	kick   chan struct{}

	mu     sync.Mutex // guards closed, and background against Close
	closed bool

	base       context.Context // of what goes on in the background
	stop       context.CancelFunc
	background sync.WaitGroup
}

var _ orchestrator.Memory = (*Service)(nil)

// New returns a Service. Close ends what it does in the background.
func New(config Config) *Service {
	config.Tokens = cmp.Or(config.Tokens, 600)
	config.Patience = cmp.Or(config.Patience, 150*time.Millisecond)
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Redact == nil {
		config.Redact = func(s string) string { return s }
	}
	if config.Judge == nil {
		config.Judge = func(context.Context, sessions.Entry, memory.Fact) memory.Judgment { return memory.Judgment{} }
	}
	s := &Service{config: config, kick: make(chan struct{}, 1)}
	s.base, s.stop = context.WithCancel(context.Background())
	return s
}

// Close ends and waits for what goes on in the background.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.background.Wait()
}

// spawn runs fn in the background. It reports false after Close.
func (s *Service) spawn(fn func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.background.Go(func() { fn(s.base) })
	return true
}

// embed returns the embedding of a text if it comes soon, else none. The request
// goes on in the background: its result is cached for the next time. While the
// API is slower than the patience, nobody waits for it.
func (s *Service) embed(ctx context.Context, text string, patience time.Duration) memory.Embedding {
	if s.config.Embedder == nil || strings.TrimSpace(text) == "" {
		return memory.Embedding{}
	}
	done := make(chan memory.Vector, 1)
	if !s.spawn(func(ctx context.Context) {
		begin := time.Now()
		vectors, err := s.config.Embedder.Embed(ctx, []string{text})
		s.slow.Store(time.Since(begin) > s.config.Patience)
		if err != nil || len(vectors) != 1 {
			s.config.Log.DebugContext(ctx, "could not embed a text; searching by keyword", "err", err)
			done <- nil
			return
		}
		done <- vectors[0]
	}) {
		return memory.Embedding{}
	}
	if s.slow.Load() {
		patience = 0
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-done:
		return s.embedding(v)
	case <-ctx.Done():
	case <-timer.C:
		select { // it may be known already
		case v := <-done:
			return s.embedding(v)
		default:
		}
	}
	return memory.Embedding{}
}

// embedWithin is embed, unless a profile does without embeddings of this model.
func (s *Service) embedWithin(ctx context.Context, text string, patience time.Duration, limits orchestrator.RecallLimits) memory.Embedding {
	if s.config.Embedder == nil || limits.WordsOnly || limits.EmbeddingModel != "" && limits.EmbeddingModel != s.config.Embedder.Model() {
		return memory.Embedding{}
	}
	return s.embed(ctx, text, patience)
}

func (s *Service) embedding(v memory.Vector) memory.Embedding {
	if v == nil {
		return memory.Embedding{}
	}
	return memory.Embedding{Vector: v, Model: s.config.Embedder.Model()}
}

// Limits of what is recalled before a turn.
const (
	maxRecalled = 12
	maxStanding = 12
	relation    = "remembered about you"
	preamble    = "Known from earlier about the person who asks. Take it into account where it fits; newer messages count more."

	// discreet is added where others read the answer.
	discreet = " Others read the answer: go by it, and do not repeat it."
)

// Recall implements orchestrator.Memory. It returns one quote at most: first what
// has to do with the text, then what the person said of themself, as far as the
// budget of tokens goes.
func (s *Service) Recall(ctx context.Context, conv sessions.Conversation, entry sessions.Entry, limits orchestrator.RecallLimits) ([]messages.Quote, error) {
	if entry.In.Sender.Bot || entry.In.Sender.ID == "" {
		return nil, nil
	}
	scope := memory.Scope{Person: person(entry.In), Codebase: conv.CodebaseID}
	if any, err := s.any(ctx, scope.Person); !any {
		return nil, err
	}
	text := wording.Cut(entry.In.Text, 4*memory.MaxText)
	limit := cmp.Or(limits.Max, maxRecalled)
	q := memory.Query{Scope: scope, Text: text, Embedding: s.embedWithin(ctx, text, s.config.Patience, limits), Limit: limit, Now: s.config.Now()}
	var matches []memory.Match
	var standing []memory.Memory
	err := s.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		if matches, err = tx.Recall(ctx, q); err != nil {
			return err
		}
		standing, err = tx.Standing(ctx, scope, maxStanding)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	all := make([]memory.Memory, 0, len(matches)+len(standing))
	for _, m := range matches {
		all = append(all, m.Memory)
	}
	if list := s.within(append(all, standing...), limit); list != "" {
		before := preamble
		if !entry.In.Private {
			before += discreet
		}
		return []messages.Quote{{Relation: relation, Text: before + "\n" + list}}, nil
	}
	return nil, nil
}

// any reports whether something may be recalled of a person, so that most turns
// cost one short read.
func (s *Service) any(ctx context.Context, person string) (ok bool, err error) {
	err = s.config.Storage.ReadOnce(ctx, func(tx Tx) error {
		ok, err = tx.Recallable(ctx, person, s.config.Now())
		return err
	})
	return ok && err == nil, err
}

// within lists memories for a model, each once, up to the limit and the budget of
// tokens.
func (s *Service) within(list []memory.Memory, limit int) string {
	var b strings.Builder
	seen := make(map[int64]bool)
	left := s.config.Tokens
	for _, m := range list {
		if seen[m.Number] || len(seen) == limit {
			continue
		}
		seen[m.Number] = true
		line := forModel(m, s.config.Now())
		if left -= messages.EstimateTokens(messages.NewText(messages.RoleUser, line)); left < 0 {
			break
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// forModel is a memory as a line for a model.
func forModel(m memory.Memory, now time.Time) string {
	what := string(m.Category)
	if m.Kind == memory.Episodic {
		what = "event"
	}
	if what != "" {
		what += ", "
	}
	return fmt.Sprintf("- [%d] %s (%s%s)", m.Number, m.Text, what, wording.Ago(m.UpdatedAt, now))
}

// Timing of the background.
const (
	embedEvery = time.Minute
	sweepEvery = time.Hour
	batch      = 64
	sweepBatch = 1000
)

// Run embeds what has no embedding yet and sweeps expired episodes, until ctx
// ends. Several processes may do so at once.
func (s *Service) Run(ctx context.Context) {
	embedding, sweeping := time.NewTicker(embedEvery), time.NewTicker(sweepEvery)
	defer embedding.Stop()
	defer sweeping.Stop()
	s.sweep(ctx)
	s.embedAll(ctx)
	s.index(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweeping.C:
			s.sweep(ctx)
			s.index(ctx)
		case <-embedding.C:
			s.index(ctx)
			s.embedAll(ctx)
		case <-s.kick:
			s.embedAll(ctx)
		}
	}
}

// index makes memories found by their words that were stored in SQL.
func (s *Service) index(ctx context.Context) { s.repeat(ctx, "words", batch, Tx.IndexWords) }

// repeat runs a step, each in a transaction, until it does less than it may.
func (s *Service) repeat(ctx context.Context, what string, limit int, step func(tx Tx, ctx context.Context, limit int) (int, error)) {
	for ctx.Err() == nil {
		var n int
		err := s.config.Storage.InTx(ctx, func(tx Tx) error {
			var err error
			n, err = step(tx, ctx, limit)
			return err
		})
		if err != nil && ctx.Err() == nil {
			s.config.Log.WarnContext(ctx, "could not build the index of memories", "step", what, "err", err)
		}
		if err != nil || n < limit {
			return
		}
	}
}

func (s *Service) sweep(ctx context.Context) {
	now := s.config.Now()
	err := s.config.Storage.InTx(ctx, func(tx Tx) error { return tx.SweepLinkCodes(ctx, now, now.Add(-memory.LinkTriesFor)) })
	if err != nil && ctx.Err() == nil {
		s.config.Log.WarnContext(ctx, "could not sweep link codes", "err", err)
	}
	for {
		var n int64
		err := s.config.Storage.InTx(ctx, func(tx Tx) error {
			var err error
			n, err = tx.SweepMemories(ctx, s.config.Now(), sweepBatch)
			return err
		})
		if err != nil && ctx.Err() == nil {
			s.config.Log.WarnContext(ctx, "could not sweep expired memories", "err", err)
		}
		if err != nil || n < sweepBatch {
			return
		}
	}
}

// embedAll embeds all memories that the model has not embedded.
func (s *Service) embedAll(ctx context.Context) {
	for some := 0; s.config.Embedder != nil; some++ {
		n, err := s.embedSome(ctx)
		if err != nil && ctx.Err() == nil {
			s.config.Log.WarnContext(ctx, "could not embed memories; they are found by keyword until it works", "reason", fault.Public(err), "err", err)
		}
		if err != nil || n < batch {
			if some > 0 {
				s.index(ctx)
			}
			return
		}
	}
}

func (s *Service) embedSome(ctx context.Context) (int, error) {
	model := s.config.Embedder.Model()
	var list []memory.Memory
	err := s.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		list, err = tx.BareMemories(ctx, model, batch, s.config.Now())
		return err
	})
	if err != nil || len(list) == 0 {
		return 0, err
	}
	texts := lists.Map(list, func(m memory.Memory) string { return m.Text })
	vectors, err := s.config.Embedder.EmbedEach(ctx, texts)
	if err != nil {
		return 0, err
	}
	if len(vectors) != len(list) {
		return 0, errors.New("the embedder gave another number of vectors")
	}
	refused := 0
	err = s.config.Storage.InTx(ctx, func(tx Tx) error {
		refused = 0
		for i, m := range list {
			var err error
			if vectors[i] == nil {
				refused++
				err = tx.RefuseEmbedding(ctx, m, model)
			} else {
				err = tx.SaveEmbedding(ctx, m, memory.Embedding{Vector: vectors[i], Model: model})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && refused > 0 {
		s.config.Log.WarnContext(ctx, "the embeddings API refused memories; they are found by keyword", "model", model, "memories", refused)
	}
	return len(list), err
}

// Embedding returns the embedding of a text for whoever can wait some seconds for
// it, else none: then Run makes it later.
func (s *Service) Embedding(ctx context.Context, text string) memory.Embedding {
	e := s.embed(ctx, text, 4*storePatience)
	if e.IsZero() {
		s.later()
	}
	return e
}

// later has Run embed soon what could not be embedded at once.
func (s *Service) later() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// person names whose memory it is, as plans and the audit log do.
func person(in messages.Inbound) string {
	return command.Request{Entry: sessions.Entry{In: in}}.Actor()
}
