package openai

import (
	"fmt"
	"testing"
)

// What a model thinks comes in thousands of pieces, which are joined in one go, and what it
// makes up has an end.
func TestReasoningDetailsInManyPieces(t *testing.T) {
	t.Parallel()
	var a answer
	for range 200_000 {
		a.addDetails(`[{"type":"reasoning.text","index":0,"text":"abcd "}]`)
	}
	if len(a.details) != 1 || a.details[0].text.Len() != 1_000_000 {
		t.Errorf("%d elements", len(a.details))
	}
	for i := range 1000 {
		a.addDetails(fmt.Sprintf(`[{"type":"reasoning.text","index":%d,"text":"x"}]`, i+1))
	}
	if len(a.details) != maxDetails {
		t.Errorf("%d elements of 1,001 are kept", len(a.details))
	}
}
