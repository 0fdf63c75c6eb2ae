package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"remote-agent/internal/fault"
	"remote-agent/internal/localsocket"
	"remote-agent/internal/messages"
)

// Client is the Backend of another process, which Handler serves.
type Client struct{ HTTP *http.Client }

var _ Backend = Client{}

// maxEvent is the longest line of a stream that is read, in bytes.
const maxEvent = 16 << 20

func (c Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var send io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fault.Wrap(err, fault.Internal, "encode the request")
		}
		send = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://bot/console/"+path, send)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "make the request")
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	if err := localsocket.ReadError(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// unreachable classifies an error of the connection.
func unreachable(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, localsocket.ErrNobody):
		return fmt.Errorf("%w: %w", errStopped, err)
	}
	if known := (*fault.Error)(nil); errors.As(err, &known) {
		return known
	}
	return fmt.Errorf("%w: %w", errStopped, err)
}

func (c Client) get(ctx context.Context, path string, into any) error {
	response, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return decode(ctx, response, into)
}

func decode(ctx context.Context, response *http.Response, into any) error {
	defer response.Body.Close() //nolint:errcheck // only read
	if err := json.NewDecoder(io.LimitReader(response.Body, maxEvent)).Decode(into); err != nil {
		return unreachable(ctx, err)
	}
	return nil
}

// Say implements Backend.
func (c Client) Say(ctx context.Context, conversation string, m Message) (id messages.MessageID, err error) {
	response, err := c.do(ctx, http.MethodPost, conversation+"/messages", m)
	if err != nil {
		return "", err
	}
	return id, decode(ctx, response, &id)
}

// State implements Backend.
func (c Client) State(ctx context.Context, conversation string) (s State, err error) {
	return s, c.get(ctx, conversation+"/state", &s)
}

// Commands implements Backend.
func (c Client) Commands(ctx context.Context) (names []string, err error) {
	return names, c.get(ctx, "commands", &names)
}

// Watch implements Backend.
func (c Client) Watch(ctx context.Context, conversation string) (Watcher, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))           // Close ends it: what came until then is read
	response, err := c.do(ctx, http.MethodGet, conversation+"/events", nil) //nolint:bodyclose // the watcher closes it
	if err != nil {
		cancel()
		return nil, err
	}
	w := &remoteWatcher{body: response.Body, cancel: cancel, events: make(chan Event), ended: make(chan struct{})}
	go w.read(ctx)
	return w, nil
}

// remoteWatcher reads the events of another process.
type remoteWatcher struct {
	body   io.ReadCloser
	cancel func()
	events chan Event
	ended  chan struct{}
}

func (w *remoteWatcher) read(ctx context.Context) {
	defer close(w.ended)
	lines := bufio.NewScanner(w.body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		var e Event
		if len(lines.Bytes()) == 0 {
			continue // it asks if we are still there
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			return
		}
		select {
		case w.events <- e:
		case <-ctx.Done():
			return
		}
	}
}

// Next implements Watcher.
func (w *remoteWatcher) Next(ctx context.Context) (Event, error) {
	select {
	case e := <-w.events:
		return e, nil
	default:
	}
	select {
	case e := <-w.events:
		return e, nil
	case <-w.ended:
		return Event{}, io.EOF
	case <-ctx.Done():
		return Event{}, ctx.Err()
	}
}

// Close implements Watcher.
func (w *remoteWatcher) Close() error {
	w.cancel()
	err := w.body.Close()
	<-w.ended
	return err
}
