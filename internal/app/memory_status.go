package app

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/memory/embed"
	"remote-agent/internal/store"
	"remote-agent/internal/web"
	"remote-agent/internal/wording"
)

// indexesEvery is how often the indexes of PostgreSQL are looked after.
const indexesEvery = time.Hour

// keepIndexes brings the index of messages up to date after an upgrade, and keeps what
// pgvector has in step, until ctx ends.
func (c caretaker) keepIndexes(ctx context.Context) {
	for again := true; again; again = sleep(ctx, indexesEvery) {
		if err := c.store.KeepSearch(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "could not bring the index of messages up to date", "err", err)
		}
		if err := c.store.KeepVectors(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "could not maintain the pgvector tables", "err", err)
		}
	}
}

// check tells on /readyz how memories are found. It judges nothing: the
// service is ready also where memory is off.
func (m *remembering) check() []web.Check {
	if m.service == nil {
		return []web.Check{{Name: "memory", Info: "off"}}
	}
	return []web.Check{{Name: "memory", Info: searchInUse(m.config, m.vectors)}}
}

// searchInUse says how memories are found, in a few words.
func searchInUse(cfg config.Memory, v store.VectorState) string {
	how := "full text, because no embeddings API is set"
	if cfg.Embeds() {
		how = "embeddings of " + cfg.Model + ", compared by exact cosine"
	}
	if v.Ready {
		how += "; pgvector " + v.Installed + " for SQL"
	}
	return how
}

// MemoryStatus prints how memories are found and why, how many there are, and
// whether the embeddings API answers. It changes nothing.
func MemoryStatus(ctx context.Context, cfg config.Config, env Env) error {
	if !cfg.Memory.On {
		say(env.Stdout, "memory      off (MEMORY=off)\n")
	}
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		var counts store.MemoryCounts
		var near map[memory.Kind]map[int64]int64
		err := s.InRead(ctx, func(tx *store.Tx) (err error) {
			if counts, err = tx.Memories().CountAll(ctx); err != nil {
				return err
			}
			near, err = tx.Memories().Nearness(ctx)
			return err
		})
		if err != nil {
			return err
		}
		vectors, err := s.Vectors(ctx)
		if err != nil {
			return err
		}
		say(env.Stdout, "search      %s\n", searchInUse(cfg.Memory, vectors))
		say(env.Stdout, "memories    %s, %s, of %s\n", count(counts.Facts, "fact"), count(counts.Episodes, "episode"), wording.Count(int(counts.People), "person", "people"))
		sayModels(cfg, env, counts)
		if err := sayVectors(ctx, env, s, vectors); err != nil {
			return err
		}
		sayEmbedder(ctx, cfg, env)
		sayNearness(env, "facts", memory.FactThreshold, near[memory.Semantic])
		sayNearness(env, "episodes", memory.EpisodeThreshold, near[memory.Episodic])
		return nil
	})
}

// sayModels says by which model memories are embedded.
func sayModels(cfg config.Config, env Env, counts store.MemoryCounts) {
	for _, model := range slices.Sorted(maps.Keys(counts.Models)) {
		by, refused := memory.Refuser(model)
		switch n := counts.Models[model]; {
		case refused:
			say(env.Stdout, "embedded    %d not, because %s refused them: found by keyword\n", n, by)
		case model == "":
			say(env.Stdout, "embedded    %d without a model: found by keyword\n", n)
		case !cfg.Memory.Embeds():
			say(env.Stdout, "embedded    %d by %s, which is not configured: found by keyword\n", n, model)
		case model != cfg.Memory.Model:
			say(env.Stdout, "embedded    %d by %s: found by keyword until the daemon re-embeds them\n", n, model)
		default:
			say(env.Stdout, "embedded    %d by %s\n", n, model)
		}
	}
}

// sayVectors says what pgvector is used for.
func sayVectors(ctx context.Context, env Env, s *store.Store, v store.VectorState) error {
	switch {
	case s.Dialect() == "sqlite":
		return nil
	case v.Available == "" && v.Installed == "":
		say(env.Stdout, "pgvector    not installed; only the SQL functions need it\n")
		return nil
	case !v.Ready:
		say(env.Stdout, "pgvector    not used: %s\n", v.Todo)
		return nil
	}
	missing, err := s.MissingVectors(ctx)
	if err != nil {
		return err
	}
	say(env.Stdout, "pgvector    %s, for the SQL functions; %d vectors not copied yet\n", v.Installed, missing)
	for _, index := range v.Indexes {
		state := "in use"
		if !index.Valid {
			state = "being built, or left over; the daemon rebuilds it"
		}
		say(env.Stdout, "index       %s %s\n", index.Name, state)
	}
	if len(v.Indexes) == 0 {
		say(env.Stdout, "index       none yet: the daemon builds one at %d vectors\n", store.VectorIndexFrom)
	}
	return nil
}

// sayEmbedder asks the embeddings API for one embedding.
func sayEmbedder(ctx context.Context, cfg config.Config, env Env) {
	if !cfg.Memory.Embeds() {
		say(env.Stdout, "embeddings  no API; set EMBEDDING_BASE_URL or EMBEDDING_API_KEY\n")
		return
	}
	client, err := embed.New(embed.Config{BaseURL: cfg.Memory.BaseURL, APIKey: cfg.Memory.APIKey.Reveal(), Model: cfg.Memory.Model})
	if err == nil {
		defer client.Close()
		begin := time.Now()
		if _, err = client.Embed(ctx, []string{"Is anybody there?"}); err == nil {
			say(env.Stdout, "embeddings  %s responded in %s\n", cfg.Memory.Model, time.Since(begin).Round(time.Millisecond))
			return
		}
	}
	say(env.Stdout, "embeddings  %s is not responding: %s\n", cfg.Memory.Model, fault.Public(err))
}

const (
	nearStep  = 20  // thousandths of similarity in one bar
	nearReach = 100 // thousandths below and above the threshold
	nearBar   = 40  // characters of the longest bar
)

// sayNearness draws how near memories were to the nearest other one, around the
// threshold from which on two are one: those just below may be the same and were kept
// apart, those just above may be different and were made one.
func sayNearness(env Env, what string, threshold float64, counts map[int64]int64) {
	at := memory.Nearness(threshold)
	bars := make(map[int64]int64)
	var most, below, above int64
	for near, n := range counts {
		if near < at-nearReach || near >= at+nearReach {
			continue
		}
		bar := at + (near-at+nearReach)/nearStep*nearStep - nearReach
		bars[bar] += n
		most = max(most, bars[bar])
		if near < at {
			below += n
		} else {
			above += n
		}
	}
	say(env.Stdout, "near        %d %s just below %.2f, kept apart; %d just above, taken for one\n", below, what, threshold, above)
	if most == 0 {
		return
	}
	for bar := at - nearReach; bar < min(at+nearReach, 1000); bar += nearStep {
		mark := " "
		if bar == at {
			mark = ">"
		}
		say(env.Stdout, "          %s %.2f %6d %s\n", mark, float64(bar)/1000, bars[bar], strings.Repeat("#", int((bars[bar]*nearBar+most-1)/most)))
	}
}
