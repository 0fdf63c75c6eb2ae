package assistant_test

import (
	"math"
	"testing"

	"remote-agent/internal/assistant"
)

// Sums of what servers report stay numbers that both databases keep, whatever they report.
func TestUsageIsBelievedWithinReason(t *testing.T) {
	t.Parallel()
	var sum assistant.Usage
	for range 1000 {
		sum = sum.Add(assistant.Usage{InputTokens: math.MaxInt64, OutputTokens: -7, CachedTokens: math.MinInt64, WrittenTokens: math.MaxInt64, CostUSD: 0.5})
	}
	if sum.InputTokens != 1e12 || sum.OutputTokens != 0 || sum.CachedTokens != 0 || sum.WrittenTokens != 1e12 || sum.CostUSD != 500 {
		t.Errorf("%+v", sum)
	}
	if sum = (assistant.Usage{InputTokens: 2}).Add(assistant.Usage{InputTokens: 3, OutputTokens: 4}); sum != (assistant.Usage{InputTokens: 5, OutputTokens: 4}) {
		t.Errorf("%+v", sum)
	}
}
