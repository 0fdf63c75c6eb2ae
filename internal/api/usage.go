package api

import (
	"context"

	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// usageBody has sums of what was used, and the sum of all.
type usageBody struct {
	By    string      `json:"by"`
	Total sumBody     `json:"total"`
	Items []groupBody `json:"items"`
	More  bool        `json:"more"` // there are more than limit
}

type groupBody struct {
	Key  *string `json:"key"`
	Name *string `json:"name"`
	sumBody
}

// sumBody is a sum. The cost is in millionths of a US dollar; tokens whose price
// is not known are not part of it. It is spend.Sum.
type sumBody struct {
	Turns         int   `json:"turns"`
	InputTokens   int64 `json:"input_tokens"`
	OutputTokens  int64 `json:"output_tokens"`
	Micros        int64 `json:"cost_micros"`
	UnpricedToken int64 `json:"unpriced_tokens"`
}

// usage sums what was used, the dearest first, days the newest first.
func (a *API) usage(ctx context.Context, c call) (any, error) {
	f := store.UsageFilter{Actor: c.args.text("person"), Since: c.args.time("since"), Until: c.args.time("until")}
	limit := int(c.args.number("limit"))
	body := usageBody{By: c.args.text("by"), Items: []groupBody{}}
	err := a.config.Store.InRead(ctx, func(tx *store.Tx) error {
		var ok bool
		var err error
		if f.ConversationID, ok, err = conversationID(ctx, tx, c.args.text("conversation")); err != nil || !ok {
			return err // of a conversation that is not there, there is nothing
		}
		groups, total, err := tx.Spending().UsageBy(ctx, spend.By(body.By), f, limit+1)
		if err != nil {
			return err
		}
		body.Total, body.More = sumBody(total), len(groups) > limit
		for _, g := range groups[:min(limit, len(groups))] {
			body.Items = append(body.Items, groupBody{Key: maybe(g.Key), Name: maybe(g.Name), sumBody: sumBody(g.Sum)})
		}
		return nil
	})
	return body, err
}
