package telegram

import (
	"errors"
	"testing"
)

// TestTheOneUpdateThatIsNotJSON: an update is given up only if three answers in a row with
// it alone cannot be read. Anything less may be a line that was bad for a moment, and to
// skip is to lose what a person said.
func TestTheOneUpdateThatIsNotJSON(t *testing.T) {
	t.Parallel()
	answer := func(body string) error { return &garbledError{[]byte(body)} }
	bad, cut := answer(`{"update_id":7,"message":{]}`), answer(`{"update_id":7,"mess`)
	for name, tt := range map[string]struct {
		answers []error
		skip    bool
		limit   int // of the next request
	}{
		"nothing yet":                {limit: 100},
		"once":                       {answers: []error{bad}, limit: 1},
		"twice":                      {answers: []error{bad, bad}, limit: 1},
		"three times":                {answers: []error{bad, bad, bad}, skip: true, limit: 1},
		"another one between":        {answers: []error{bad, bad, cut, bad, bad}, limit: 1},
		"a failure between":          {answers: []error{bad, errors.New("refused"), bad, bad}, skip: true, limit: 1},
		"an answer between":          {answers: []error{bad, bad, nil, bad}, limit: 1},
		"and well again":             {answers: []error{bad, bad, nil}, limit: 100},
		"no update":                  {answers: []error{answer("<html>"), answer("<html>"), answer("<html>")}, limit: 1},
		"two updates":                {answers: []error{answer(`{"update_id":7},{"update_id":8},]`), answer(`{"update_id":7},{"update_id":8},]`), answer(`{"update_id":7},{"update_id":8},]`)}, limit: 1},
		"an id that nobody can have": {answers: []error{answer(`"update_id":99999999999999999999]`), answer(`"update_id":99999999999999999999]`), answer(`"update_id":99999999999999999999]`)}, limit: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var g garbled
			id, skip := int64(0), false
			for _, err := range tt.answers {
				if id, skip = g.seen(err); skip != (id != 0) {
					t.Errorf("update %d, skip %v", id, skip)
				}
			}
			if skip != tt.skip || skip && id != 7 || g.limit() != tt.limit {
				t.Errorf("update %d, skip %v, then asks for %d", id, skip, g.limit())
			}
		})
	}
}
