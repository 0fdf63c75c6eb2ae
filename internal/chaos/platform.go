package chaos

import (
	"context"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

// platform is an emulated platform, as people and bots have to do with it.
type platform interface {
	environ() []string                   // of the bot
	hook(url string)                     // says where events go
	introduce(ctx context.Context) error // what has to be said before the first message
	say(conversation int, text string) receipt
	shown(conversation int) []string // the bot's visible messages, as they stand
	again(x float64)                 // delivers something again that was acknowledged
	lifetime() int                   // messages after which people go elsewhere
	odd() int                        // calls that break the platform's rules
	close()
}

// receipt reports whether the bot has acknowledged a message.
type receipt func() bool

var platforms = map[string]func(*run) (platform, error){
	"telegram": newTelegram, "slack": newSlackSocket, "slack-http": newSlackHTTP, "github": newGitHub,
}

// calls counts calls by name and decides what goes wrong with each.
type calls struct {
	run *run

	mu sync.Mutex // guards n
	n  map[string]int
}

// next returns what goes wrong with the next call of a name, which may post a message.
// The emulator calls it before the call is carried out.
func (c *calls) next(name string, posts bool) fault {
	c.run.moments.come(calling)
	c.mu.Lock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
	n := c.n[name]
	c.mu.Unlock()
	if c.run.talk.away.Load() {
		return unavailable
	}
	f := c.run.dice.fault(c.run.talk.share(), name, n)
	if f != none {
		c.run.count("call: " + string(f))
	}
	if posts && f.ambiguous() {
		c.run.unsure()
	}
	return f
}

// faultOf is what goes wrong as a platform's emulator takes it, with the platform's own
// way to refuse.
func faultOf[E any](f fault, limited, down platformapi.Fault[E]) platformapi.Fault[E] {
	switch f {
	case slow:
		return platformapi.Fault[E]{Delay: slowly}
	case rateLimited:
		return limited
	case unavailable:
		return down
	default:
		return platformapi.Fault[E]{End: endings[f]}
	}
}

var endings = map[fault]platformapi.Ending{
	refused: platformapi.Before, silent: platformapi.After, cut: platformapi.Short, truncated: platformapi.Truncated, garbage: platformapi.Garbage,
}

// slowly is how long a slow call takes.
const slowly = 700 * time.Millisecond

// repeats are the events that may be delivered again, the newest last.
type repeats struct {
	mu  sync.Mutex // guards ids
	ids []string
}

func (r *repeats) add(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = append(r.ids[max(0, len(r.ids)-200):], ids...)
}

// pick returns one of them, for a number from 0 up to 1, or nothing.
func (r *repeats) pick(x float64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) == 0 {
		return ""
	}
	return r.ids[int(x*float64(len(r.ids)))]
}

// isStray reports whether a message is a placeholder that nobody filled: three dots,
// or the first words of an answer with three dots behind them, for the notification.
func isStray(text string) bool { return strings.HasSuffix(strings.TrimSpace(text), "…") }
