package telegram

import (
	"encoding/json"
	"slices"
	"testing"
)

// What is formatted as a quotation or as code is named beside the text, in which
// nothing shows it. Offsets are UTF-16; forged ones are left out.
func TestWhatIsFormattedAsAQuotation(t *testing.T) {
	t.Parallel()
	text := "I say 😀 this\nBob's words\nand code"
	entities := []entity{
		{Type: "bold", Offset: 0, Length: 5}, {Type: "blockquote", Offset: 14, Length: 11}, {Type: "pre", Offset: 26, Length: 8},
		{Type: "pre", Offset: 26, Length: 800}, {Type: "blockquote", Offset: -1, Length: 3}, {Type: "expandable_blockquote", Offset: 13, Length: 1},
		{Type: "expandable_blockquote", Offset: 9, Length: 4},
	}
	if got, want := cited(text, entities), []string{"Bob's words", "and code", "this"}; !slices.Equal(got, want) {
		t.Errorf("cited %q, want %q", got, want)
	}
	encoded, err := json.Marshal(entities[1:2])
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := newTestAdapter(t).translate(me, json.RawMessage(msg(annJSON, privJSON, `"text":"I say 😀 this\nBob's words\nand code"`, `"entities":`+string(encoded))))
	if err != nil || !slices.Equal(got.Cited, []string{"Bob's words"}) || got.Text != text {
		t.Errorf("translated %+v, %v", got, err)
	}
}
