package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

// beDeaf polls Telegram until ctx ends.
func beDeaf(ctx context.Context) error {
	ready := http.Server{Addr: os.Getenv("LISTEN_ADDR"), ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { _ = ready.ListenAndServe() }() // ends with the process
	base := os.Getenv("TELEGRAM_API_URL") + "/bot" + os.Getenv("TELEGRAM_BOT_TOKEN") + "/getUpdates?timeout=1&offset="
	for offset := int64(0); ctx.Err() == nil; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+fmt.Sprint(offset), nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		var got struct {
			Result []struct {
				ID int64 `json:"update_id"`
			}
		}
		err = json.NewDecoder(resp.Body).Decode(&got)
		if err := resp.Body.Close(); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		for _, u := range got.Result {
			offset = max(offset, u.ID+1)
		}
	}
	return nil
}
