package pages

import (
	"remote-agent/internal/html"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

const maxCosts = 200 // rows of a session

// cost shows what a session used, turn by turn and model by model.
func (p *sessionPages) cost(r *request, of store.SessionRow) (html.Group, error) {
	var list []store.TurnUsage
	var sum spend.Sum
	ctx := r.Context()
	err := p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		if sum, err = tx.SumUsage(ctx, store.UsageFilter{SessionID: of.ID}); err != nil {
			return err
		}
		list, err = tx.SessionUsage(ctx, of.ID, maxCosts+1)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return html.Group{empty(html.Text("Nothing was used here yet. Each turn is here with its model, its tokens and, where the price of the model is known, what it cost."))}, nil
	}
	more := len(list) > maxCosts
	body := html.Group{
		html.El("p", html.Textf("%s in %d turns", sum, sum.Turns)),
		table([]string{"Turn", "For", "Model", "Requests", "Tokens in", "of these cached", "Tokens out", "Cost"}, html.Map(list[:min(len(list), maxCosts)], func(u store.TurnUsage) html.Node {
			model := u.Model
			if model == "" {
				model = u.Assistant
			}
			return row(p.show.when(u.At), html.Text(p.show.head200(u.Actor)), html.Text(p.show.head200(model)), html.Textf("%d", u.Requests),
				html.Textf("%d", u.Input), html.Textf("%d", u.Cached), html.Textf("%d", u.Output), html.Text(costText(u)))
		})),
	}
	if more {
		body = append(body, html.El("p", html.Class("muted"), html.Textf("The newest %d rows are shown; the sum is of all.", maxCosts)))
	}
	return body, nil
}

// costText is what is known of a price.
func costText(u store.TurnUsage) string {
	switch {
	case u.Micros == 0 && u.Unpriced > 0:
		return "no price data"
	case u.Unpriced > 0:
		return spend.Dollars(u.Micros) + " and tokens without price data"
	}
	return spend.Dollars(u.Micros)
}
