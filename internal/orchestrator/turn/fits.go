package turn

import (
	"sync"
	"time"
)

const (
	// fitsFor is how long it is remembered what fits a model: its server may have got a larger
	// window meanwhile, and an error may have been taken for one about the window.
	fitsFor  = time.Hour
	fitsMost = 64 // models
)

// fits remembers the budgets that fitted models which had refused larger ones, so that each
// turn does not find out again. It is safe for concurrent use; the zero value is empty.
type fits struct {
	mu      sync.Mutex // guards byModel
	byModel map[string]fit
}

type fit struct {
	tokens int
	until  time.Time
}

// within returns budget, or what fits the model if that is less.
func (f *fits) within(model string, budget int, now time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.byModel[model]; ok && now.Before(known.until) {
		return min(budget, known.tokens)
	}
	return budget
}

func (f *fits) learn(model string, tokens int, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byModel == nil || len(f.byModel) >= fitsMost {
		f.byModel = make(map[string]fit)
	}
	f.byModel[model] = fit{tokens, now.Add(fitsFor)}
}
