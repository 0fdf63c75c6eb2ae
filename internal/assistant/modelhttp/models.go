package modelhttp

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Models asks an API with req for the names of its models. An answer that is no list has none.
func Models(client *http.Client, req *http.Request) ([]string, error) {
	resp, err := client.Do(req) //nolint:gosec // the address is the operator's
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Data))
	for i, model := range list.Data {
		names[i] = strings.TrimPrefix(model.ID, "models/") // as Gemini's list has them
	}
	return names, nil
}
