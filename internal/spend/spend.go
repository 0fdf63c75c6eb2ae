// Package spend knows what models cost and what may be spent: prices, sums and
// budgets. Sums are in tokens, and in US dollars where the price is known. It
// does no I/O.
package spend

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
)

//go:embed prices.json
var pricesFile []byte

// Price is what a model costs, in US dollars for a million tokens.
type Price struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	Cached float64 `json:"cached"` // input read from the provider's cache
	Write  float64 `json:"write"`  // input written to the provider's cache; zero: as Input
}

// Prices is the price list that is built in.
type Prices struct {
	Date   string           `json:"date"` // when it was made, YYYY-MM-DD
	Models map[string]Price `json:"models"`
}

// List returns the built-in prices.
var List = sync.OnceValue(func() Prices {
	var p Prices
	if err := json.Unmarshal(pricesFile, &p); err != nil {
		panic("prices.json: " + err.Error()) // a test reads it
	}
	return p
})

// PriceOf returns the price of a model. The prefixes of providers and a date at
// the end of the name are ignored: "openai/gpt-5-mini-2025-08-07" costs what
// gpt-5-mini does. Claude's versions may be written with a dot, as OpenRouter does.
func PriceOf(model string) (Price, bool) {
	name, ok := NameOf(model)
	return List().Models[name], ok
}

// NameOf returns the name under which PriceOf finds the price of a model.
func NameOf(model string) (string, bool) {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	if strings.HasPrefix(model, "claude-") {
		model = strings.ReplaceAll(model, ".", "-")
	}
	models := List().Models
	if _, ok := models[model]; ok {
		return model, true
	}
	for name := range models {
		if rest, ok := strings.CutPrefix(model, name); ok && isVersion(rest) {
			return name, true // only one can fit, because no version ends with another
		}
	}
	return "", false
}

// isVersion reports whether what follows the name of a model says only of when it
// is: "-2025-08-07", "-20250807", "@20250807" or "-latest".
func isVersion(rest string) bool {
	if rest == "" || rest[0] != '-' && rest[0] != '@' {
		return false
	}
	if rest = rest[1:]; rest == "latest" {
		return true
	}
	return slices.ContainsFunc([]string{"20060102", time.DateOnly}, func(layout string) bool { _, err := time.Parse(layout, rest); return err == nil })
}

// Cost returns what a usage of a model costs in US dollars. What an agent or an API
// says itself counts more than the list. ok is false where the price is not known.
func Cost(model string, u assistant.Usage) (usd float64, ok bool) {
	if u.CostUSD > 0 {
		return u.CostUSD, true
	}
	p, ok := PriceOf(model)
	if !ok {
		return 0, false
	}
	write := cmp.Or(p.Write, p.Input)
	in, out := count(u.InputTokens), count(u.OutputTokens)
	cached, written := count(u.CachedTokens), count(u.WrittenTokens)
	plain := max(in-cached-written, 0)
	return (plain*p.Input + cached*p.Cached + written*write + out*p.Output) / 1e6, true
}

// count is a number of tokens as a server reported it; a negative one is none.
func count(tokens int64) float64 { return float64(max(tokens, 0)) }

// Record is what a turn, or a part of one, used.
type Record struct {
	EntryID        string
	ConversationID string
	SessionID      string
	CodebaseID     string
	Actor          string // whose turn it was
	Assistant      string
	Model          string
	Usage          assistant.Usage
	Micros         int64 // cost in millionths of a US dollar; meaningless unless Known
	Known          bool  // the price is known
	At             time.Time
}

// maxRecord is the most that one record can cost, in US dollars. More is a
// mistake of who reported it, and sums must not overflow.
const maxRecord = 1e6

// Priced returns r with its cost, which is never negative, and zero where the price is not known.
func Priced(r Record) Record {
	usd, ok := Cost(r.Model, r.Usage)
	r.Micros, r.Known = int64(math.Round(min(usd, maxRecord)*1e6)), ok
	return r
}

// Sum is a sum of records.
type Sum struct {
	Turns         int
	InputTokens   int64
	OutputTokens  int64
	Micros        int64 // of what has a known price
	UnpricedToken int64 // tokens, in and out (no price data)
}

// String returns a sum as people read it: "21k tokens · $0.14".
func (s Sum) String() string {
	text := Tokens(s.InputTokens+s.OutputTokens) + " tokens"
	if s.Micros > 0 {
		text += " · " + Dollars(s.Micros)
	}
	if s.UnpricedToken > 0 && s.Micros > 0 {
		text += fmt.Sprintf(" (%s of the tokens without price data)", Tokens(s.UnpricedToken))
	}
	return text
}

// Tokens writes a number of tokens: 950, 21k, 1.3M, 4.0B.
func Tokens(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_500:
		return fmt.Sprintf("%dk", (n+500)/1000)
	case n < 999_950_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1fB", float64(n)/1e9)
}

// Dollars writes an amount: $0.14, $12.30, and "< $0.01" for less than a cent.
//
//go:noinline // it would be copied into many callers
func Dollars(micros int64) string {
	if micros > 0 && micros < 10_000 {
		return "< $0.01"
	}
	return fmt.Sprintf("$%.2f", float64(micros)/1e6)
}

// Exact writes what a sum cost with all its digits: $0.142857. A dash is a price that
// is not known.
func (s Sum) Exact() string {
	switch {
	case s.Micros > 0:
	case s.UnpricedToken > 0:
		return "–"
	case s.InputTokens+s.OutputTokens > 0:
		return "< $0.000001"
	}
	return fmt.Sprintf("$%d.%06d", s.Micros/1e6, s.Micros%1e6)
}

// Budget limits what may be spent; zero members limit nothing. Where a model's
// price is not known, tokens count.
type Budget struct {
	TurnMicros, PersonMicros, DayMicros int64
	TurnTokens, PersonTokens, DayTokens int64
}

// IsZero reports whether nothing is limited.
func (b Budget) IsZero() bool { return b == Budget{} }

// Over says in which respect a sum has reached a limit, or nothing.
func over(s Sum, micros, tokens int64) string {
	switch {
	case micros > 0 && s.Micros >= micros:
		return fmt.Sprintf("%s of %s", Dollars(s.Micros), Dollars(micros))
	case tokens > 0 && s.UnpricedToken >= tokens:
		return fmt.Sprintf("%s of %s tokens", Tokens(s.UnpricedToken), Tokens(tokens))
	}
	return ""
}

// CheckDay returns fault.Exhausted if the budget of a person or of everybody is
// used up for the day. Days are UTC.
func (b Budget) CheckDay(person, all Sum) error {
	if used := over(all, b.DayMicros, b.DayTokens); used != "" {
		return fault.Newf(fault.Exhausted, "The daily budget is used up (%s). It resets at 00:00 UTC; an operator can raise it.", used)
	}
	if used := over(person, b.PersonMicros, b.PersonTokens); used != "" {
		return fault.Newf(fault.Exhausted, "Your daily budget is used up (%s). It resets at 00:00 UTC; an operator can raise it.", used)
	}
	return nil
}

// CheckTurn reports whether a turn has used up its budget times allowed (1 plus
// how often a person let it go on), and how much it was.
func (b Budget) CheckTurn(turn Sum, allowed int64) (used string, reached bool) {
	used = over(turn, b.TurnMicros*allowed, b.TurnTokens*allowed)
	return used, used != ""
}

// Today returns the start of the day of a time, in UTC.
func Today(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) }

// Filter chooses records; empty members choose all.
type Filter struct {
	EntryID        string
	ConversationID string
	SessionID      string
	CodebaseID     string
	Actor          string
	Since          time.Time // from then on
	Until          time.Time // before then
}

// Tier is a row's member of seed 004's models_config: which model a tier means.
type Tier struct {
	Provider    string `json:"provider,omitempty"` // the assistant's name
	Model       string `json:"model_name,omitempty"`
	Description string `json:"description,omitempty"`
}
