package export

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"

	"remote-agent/internal/spend"
)

// CostsCSV writes sums of usage as CSV with a header line. Costs are in millionths
// of a US dollar, of what has a known price; unpriced_tokens are those without.
func CostsCSV(out io.Writer, by spend.By, groups []spend.Group) error {
	w := csv.NewWriter(out)
	rows := [][]string{{string(by), "name", "turns", "input_tokens", "output_tokens", "cost_micros", "unpriced_tokens"}}
	for _, g := range groups {
		rows = append(rows, []string{cell(g.Key), cell(g.Name), strconv.Itoa(g.Turns),
			strconv.FormatInt(g.InputTokens, 10), strconv.FormatInt(g.OutputTokens, 10), strconv.FormatInt(g.Micros, 10), strconv.FormatInt(g.UnpricedToken, 10)})
	}
	return unwritable(w.WriteAll(rows))
}

// costJSON is a sum for programs.
type costJSON struct {
	By       spend.By `json:"by"`
	Key      string   `json:"key"`
	Name     string   `json:"name"`
	Turns    int      `json:"turns"`
	Input    int64    `json:"input_tokens"`
	Output   int64    `json:"output_tokens"`
	Micros   int64    `json:"cost_micros"`
	Unpriced int64    `json:"unpriced_tokens"`
}

// CostsJSON writes what CostsCSV does as a JSON object a line.
func CostsJSON(out io.Writer, by spend.By, groups []spend.Group) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	for _, g := range groups {
		if err := e.Encode(costJSON{by, g.Key, g.Name, g.Turns, g.InputTokens, g.OutputTokens, g.Micros, g.UnpricedToken}); err != nil {
			return unwritable(err)
		}
	}
	return nil
}
