package spend_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/spend"
)

// TestPricesFile keeps mistakes out of a file that people edit by hand.
func TestPricesFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("prices.json")
	if err != nil {
		t.Fatal(err)
	}
	var strict spend.Prices
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&strict); err != nil {
		t.Fatalf("prices.json: %v", err)
	}
	if made, err := time.Parse(time.DateOnly, strict.Date); err != nil || made.Year() < 2025 {
		t.Errorf("date %q, %v", strict.Date, err)
	}
	if len(strict.Models) == 0 || len(strict.Models) != len(spend.List().Models) || strict.Date != spend.List().Date {
		t.Errorf("%d models in the file, %d in the list of %q", len(strict.Models), len(spend.List().Models), spend.List().Date)
	}
	for name := range strict.Models {
		if n := strings.Count(string(text), `"`+name+`":`); n != 1 {
			t.Errorf("%s is there %d times", name, n)
		}
	}
	for name, p := range strict.Models {
		if name != strings.ToLower(name) || strings.ContainsAny(name, "/ ") {
			t.Errorf("%q is not found: names are in lower case and have no provider", name)
		}
		if p.Input <= 0 || p.Output < p.Input || p.Cached <= 0 || p.Cached > p.Input || p.Write != 0 && p.Write < p.Input || p.Output > 1000 {
			t.Errorf("%s costs %+v, which cannot be", name, p)
		}
	}
}

func TestPriceOf(t *testing.T) {
	t.Parallel()
	models := spend.List().Models
	for model, want := range map[string]string{
		"gpt-5":                               "gpt-5",
		"gpt-5-mini":                          "gpt-5-mini",
		"GPT-5-Mini":                          "gpt-5-mini",
		"openai/gpt-5-mini":                   "gpt-5-mini",
		"openai/gpt-5-mini-2025-08-07":        "gpt-5-mini",
		"openrouter/openai/gpt-5-nano":        "gpt-5-nano",
		"gpt-5-2025-08-07":                    "gpt-5",
		"gpt-5.2-2025-12-11":                  "gpt-5.2",
		"claude-opus-4-20250514":              "claude-opus-4",
		"claude-opus-4-1-20250805":            "claude-opus-4-1",
		"claude-opus-4-1":                     "claude-opus-4-1",
		"anthropic/claude-sonnet-4-5-latest":  "claude-sonnet-4-5",
		"claude-sonnet-4-5@20250929":          "claude-sonnet-4-5",
		"o3-2025-04-16":                       "o3",
		"gpt-4o-mini-2024-07-18":              "gpt-4o-mini",
		"vertex/Claude-Haiku-4-5-20251001":    "claude-haiku-4-5",
		"gpt-5-codex":                         "", // another model, with a price of its own
		"gpt-5-chat-latest":                   "",
		"gpt-5.1":                             "",
		"gpt-51":                              "",
		"gpt-5-":                              "",
		"gpt-5latest":                         "",
		"gpt-5.latest":                        "",
		"gpt-520250807":                       "",
		"gpt-5-2025-13-45":                    "", // no date
		"gpt-5-20250807-preview":              "",
		"claude-opus-4-9-20260101":            "",
		"o3-pro":                              "",
		"o3-mini":                             "",
		"":                                    "",
		"/":                                   "",
		"-2025-08-07":                         "",
		"2025-08-07":                          "",
		"llama3:8b":                           "",
		strings.Repeat("gpt-5", 1000):         "",
		"gpt-5/":                              "",
		"https://example.com/v1/gpt-4o-mini":  "gpt-4o-mini",
		"gpt-4.1-mini-2025-04-14":             "gpt-4.1-mini",
		"claude-3-5-sonnet-20241022":          "",
		"my-claude-sonnet-4-5":                "",
		"anthropic/claude-sonnet-4.5":         "claude-sonnet-4-5",
		"anthropic/claude-opus-4.1-20250805":  "claude-opus-4-1",
		"gpt-4-1":                             "",
		"claude-sonnet-4-6-2026-02-17-latest": "",
	} {
		got, ok := spend.PriceOf(model)
		if ok != (want != "") || got != models[want] {
			t.Errorf("PriceOf(%.60q) = %+v, %v, want that of %q", model, got, ok, want)
		}
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	type usage = assistant.Usage
	for name, tt := range map[string]struct {
		model string
		usage usage
		want  float64
		known bool
	}{
		"Nothing":                {"gpt-5", usage{}, 0, true},
		"InAndOut":               {"gpt-5", usage{InputTokens: 1_000_000, OutputTokens: 1_000_000}, 1.25 + 10, true},
		"CachedIsPartOfInput":    {"gpt-5", usage{InputTokens: 1_000_000, CachedTokens: 400_000}, 0.6*1.25 + 0.4*0.125, true},
		"AllCached":              {"gpt-5", usage{InputTokens: 1_000_000, CachedTokens: 1_000_000}, 0.125, true},
		"WriteWithoutAPrice":     {"gpt-5", usage{InputTokens: 1_000_000, WrittenTokens: 500_000}, 1.25, true},
		"WriteCostsMore":         {"claude-sonnet-4-5", usage{InputTokens: 1_000_000, WrittenTokens: 1_000_000}, 3.75, true},
		"AllParts":               {"claude-sonnet-4-5", usage{InputTokens: 1_000_000, CachedTokens: 500_000, WrittenTokens: 200_000, OutputTokens: 100_000}, 0.3*3 + 0.5*0.3 + 0.2*3.75 + 1.5, true},
		"MorePartsThanInput":     {"gpt-5", usage{InputTokens: 10, CachedTokens: 1_000_000}, 0.125, true},
		"Unknown":                {"llama3:8b", usage{InputTokens: 1000}, 0, false},
		"NoModel":                {"", usage{InputTokens: 1000}, 0, false},
		"AgentSays":              {"llama3:8b", usage{InputTokens: 1000, CostUSD: 0.42}, 0.42, true},
		"AgentSaysMoreThanList":  {"gpt-5", usage{InputTokens: 1_000_000, CostUSD: 9}, 9, true},
		"AgentSaysNothing":       {"gpt-5", usage{InputTokens: 1_000_000, CostUSD: 0}, 1.25, true},
		"AgentSaysNonsense":      {"gpt-5", usage{InputTokens: 1_000_000, CostUSD: -3}, 1.25, true},
		"AgentSaysNoNumber":      {"gpt-5", usage{InputTokens: 1_000_000, CostUSD: math.NaN()}, 1.25, true},
		"ServerCountsBackwards":  {"gpt-5", usage{InputTokens: -1_000_000, OutputTokens: -5, CachedTokens: -7, WrittenTokens: -1}, 0, true},
		"NegativePartsMakeNoFee": {"gpt-5", usage{InputTokens: 1_000_000, CachedTokens: -1_000_000}, 1.25, true},
	} {
		got, known := spend.Cost(tt.model, tt.usage)
		if known != tt.known || math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: Cost = %v, %v, want %v, %v", name, got, known, tt.want, tt.known)
		}
	}
}

func TestPriced(t *testing.T) {
	t.Parallel()
	r := spend.Record{EntryID: "e", Model: "gpt-5-2025-08-07", Usage: assistant.Usage{InputTokens: 1000, OutputTokens: 100}, Micros: 7}
	got := spend.Priced(r)
	if r.Micros, r.Known = 2250, true; got != r {
		t.Errorf("Priced = %+v, want %+v", got, r)
	}
	if got := spend.Priced(spend.Record{Model: "other", Micros: 7, Known: true}); got.Known || got.Micros != 0 {
		t.Errorf("an unknown price is %+v", got)
	}
	// Half a millionth is not lost, and nothing that an agent says makes a debt
	// of a cost: that would lift every budget.
	if got := spend.Priced(spend.Record{Usage: assistant.Usage{CostUSD: 0.0000015}}); got.Micros != 2 {
		t.Errorf("1.5 millionths are %d", got.Micros)
	}
	for _, usd := range []float64{1e13, 1e300, math.MaxFloat64, math.Inf(1)} {
		got := spend.Priced(spend.Record{Usage: assistant.Usage{CostUSD: usd}})
		if !got.Known || got.Micros <= 1e9 || got.Micros > math.MaxInt64/1_000_000 {
			t.Errorf("$%g are %d millionths, which cannot be added up", usd, got.Micros)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.Int64()
		got := spend.Priced(spend.Record{
			Model: rapid.SampledFrom([]string{"gpt-5", "claude-opus-4-1", "other", ""}).Draw(t, "model"),
			Usage: assistant.Usage{
				InputTokens: tokens.Draw(t, "in"), OutputTokens: tokens.Draw(t, "out"), CachedTokens: tokens.Draw(t, "cached"),
				WrittenTokens: tokens.Draw(t, "written"), CostUSD: rapid.Float64().Draw(t, "usd"),
			},
		})
		if got.Micros < 0 || got.Micros > math.MaxInt64/1_000_000 || !got.Known && got.Micros != 0 {
			t.Fatalf("cost %d, known %v", got.Micros, got.Known)
		}
	})
}

func TestTokens(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0", 950: "950", 999: "999", 1000: "1k", 1499: "1k", 1500: "2k", 21_400: "21k", 999_499: "999k",
		999_500: "1.0M", 1_000_000: "1.0M", 1_340_000: "1.3M", 12_000_000: "12.0M", 999_949_999: "999.9M", 999_950_000: "1.0B", 4_000_000_000: "4.0B",
	} {
		if got := spend.Tokens(n); got != want {
			t.Errorf("Tokens(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestDollars(t *testing.T) {
	t.Parallel()
	for micros, want := range map[int64]string{
		0: "$0.00", 1: "< $0.01", 9_999: "< $0.01", 10_000: "$0.01", 140_000: "$0.14", 12_300_000: "$12.30", 1_234_567_890: "$1234.57",
	} {
		if got := spend.Dollars(micros); got != want {
			t.Errorf("Dollars(%d) = %q, want %q", micros, got, want)
		}
	}
}

func TestSumAsText(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]spend.Sum{
		"0 tokens":           {},
		"21k tokens · $0.14": {InputTokens: 20_000, OutputTokens: 1000, Micros: 140_000},
		"21k tokens":         {InputTokens: 20_000, OutputTokens: 1000, UnpricedToken: 21_000},
		"21k tokens · $0.14 (5k of the tokens without price data)": {InputTokens: 20_000, OutputTokens: 1000, Micros: 140_000, UnpricedToken: 5000},
		"950 tokens · < $0.01": {InputTokens: 900, OutputTokens: 50, Micros: 3},
	} {
		if got := s.String(); got != want {
			t.Errorf("%+v is %q, want %q", s, got, want)
		}
	}
}

// What is not known, or nearly nothing, is not shown as free.
func TestExactSums(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]spend.Sum{
		"$0.000000":   {},
		"$12.142857":  {InputTokens: 1, Micros: 12_142_857, UnpricedToken: 5},
		"–":           {InputTokens: 9, UnpricedToken: 9},
		"< $0.000001": {OutputTokens: 1},
	} {
		if got := s.Exact(); got != want {
			t.Errorf("%+v is %q, want %q", s, got, want)
		}
	}
}

func TestDayBudget(t *testing.T) {
	t.Parallel()
	dollars := spend.Budget{PersonMicros: 1_000_000, DayMicros: 5_000_000}
	tokens := spend.Budget{PersonTokens: 1000, DayTokens: 5000}
	for name, tt := range map[string]struct {
		budget      spend.Budget
		person, all spend.Sum
		want        string // a part of the text; empty: nothing is used up
	}{
		"NoLimits":              {spend.Budget{}, spend.Sum{Micros: 1e15, UnpricedToken: 1e15}, spend.Sum{Micros: 1e15}, ""},
		"NothingUsed":           {dollars, spend.Sum{}, spend.Sum{}, ""},
		"JustBelow":             {dollars, spend.Sum{Micros: 999_999}, spend.Sum{Micros: 4_999_999}, ""},
		"Person":                {dollars, spend.Sum{Micros: 1_000_000}, spend.Sum{Micros: 1_000_000}, "Your daily budget is used up ($1.00 of $1.00)"},
		"Day":                   {dollars, spend.Sum{}, spend.Sum{Micros: 5_140_000}, "The daily budget is used up ($5.14 of $5.00)"},
		"DayComesFirst":         {dollars, spend.Sum{Micros: 2_000_000}, spend.Sum{Micros: 9_000_000}, "The daily budget"},
		"PricedTokensDoNot":     {tokens, spend.Sum{InputTokens: 1e9, Micros: 1}, spend.Sum{InputTokens: 1e9}, ""},
		"PersonTokens":          {tokens, spend.Sum{UnpricedToken: 1000}, spend.Sum{UnpricedToken: 1000}, "Your daily budget is used up (1k of 1k tokens)"},
		"DayTokens":             {tokens, spend.Sum{}, spend.Sum{UnpricedToken: 6000}, "The daily budget is used up (6k of 5k tokens)"},
		"DollarsLimitNoTokens":  {dollars, spend.Sum{UnpricedToken: 1e12}, spend.Sum{UnpricedToken: 1e12}, ""},
		"TurnLimitsDoNotCount":  {spend.Budget{TurnMicros: 1, TurnTokens: 1}, spend.Sum{Micros: 5, UnpricedToken: 5}, spend.Sum{Micros: 5, UnpricedToken: 5}, ""},
		"BothKindsOfAPersonDay": {spend.Budget{PersonMicros: 10, PersonTokens: 10}, spend.Sum{UnpricedToken: 10}, spend.Sum{}, "Your daily budget"},
	} {
		err := tt.budget.CheckDay(tt.person, tt.all)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (!fault.Is(err, fault.Exhausted) || !strings.HasPrefix(fault.Public(err), tt.want) || !strings.Contains(fault.Public(err), "00:00 UTC")):
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestTurnBudget(t *testing.T) {
	t.Parallel()
	b := spend.Budget{TurnMicros: 1_000_000, TurnTokens: 2000}
	for name, tt := range map[string]struct {
		budget  spend.Budget
		turn    spend.Sum
		allowed int64
		want    string
	}{
		"NoLimit":       {spend.Budget{DayMicros: 1, PersonTokens: 1}, spend.Sum{Micros: 1e12, UnpricedToken: 1e12}, 1, ""},
		"Below":         {b, spend.Sum{Micros: 999_999, UnpricedToken: 1999}, 1, ""},
		"Dollars":       {b, spend.Sum{Micros: 1_000_000}, 1, "$1.00 of $1.00"},
		"Tokens":        {b, spend.Sum{UnpricedToken: 2500}, 1, "3k of 2k tokens"},
		"AllowedOnce":   {b, spend.Sum{Micros: 1_500_000, UnpricedToken: 3999}, 2, ""},
		"AllowedAgain":  {b, spend.Sum{Micros: 3_000_000}, 3, "$3.00 of $3.00"},
		"TokensAllowed": {b, spend.Sum{UnpricedToken: 4000}, 2, "4k of 4k tokens"},
	} {
		used, reached := tt.budget.CheckTurn(tt.turn, tt.allowed)
		if used != tt.want || reached != (tt.want != "") {
			t.Errorf("%s: %q, %v, want %q", name, used, reached, tt.want)
		}
	}
}

func TestBudgetIsZero(t *testing.T) {
	t.Parallel()
	if !(spend.Budget{}).IsZero() {
		t.Error("no limits are limits")
	}
	for _, b := range []spend.Budget{
		{TurnMicros: 1}, {PersonMicros: 1}, {DayMicros: 1}, {TurnTokens: 1}, {PersonTokens: 1}, {DayTokens: 1},
	} {
		if b.IsZero() {
			t.Errorf("%+v limits nothing", b)
		}
	}
}

func TestToday(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("+13", 13*3600)
	for _, tt := range []struct{ now, want time.Time }{
		{time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)},
		{time.Date(2026, 11, 21, 23, 59, 59, 999, time.UTC), time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)},
		{time.Date(2026, 11, 21, 9, 0, 0, 0, zone), time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}, // still yesterday in UTC
	} {
		if got := spend.Today(tt.now); !got.Equal(tt.want) || got.Location() != time.UTC {
			t.Errorf("Today(%s) = %s, want %s", tt.now, got, tt.want)
		}
	}
}
