package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"remote-agent/internal/fault"
	"remote-agent/internal/waittest"
)

// Finding 9: one line that is no message lost the server.
func TestFinding9GarbageLinesAreSkippedAndLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	opts := inMemory(func(ctx context.Context, s Server, in io.Reader, out io.Writer) {
		for _, line := range []string{
			"Welcome to my server!", "[INFO] listening on stdio\r", `{"level":"info","msg":"no message of the protocol"}`, "", "\x1b[31mred\x1b[0m", strings.Repeat("x", 200<<10), "six", "seven",
		} {
			fmt.Fprintln(out, line)
		}
		serveExample(ctx, s, in, out)
	})
	opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	tools, problems := connect(t, opts, Server{Name: "example", Command: []string{"x"}})
	checkExample(t, tools, problems)
	if got := log.String(); strings.Count(got, "is skipped") != maxSkipped || !strings.Contains(got, "Welcome to my server!") || strings.Contains(got, "\x1b") || len(got) > 4096 {
		t.Errorf("the log has %d lines: %.2000q", strings.Count(got, "is skipped"), got)
	}
}

// TestToolsThatChange: whoever asks for the tools of a server gets those that it has now, and
// one that says all the time that they are others is asked once in a while.
func TestToolsThatChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, lists, connects, busy := exampleServer(), atomic.Int64{}, atomic.Int64{}, atomic.Bool{}
		server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
				switch {
				case method == "tools/list" && busy.Load():
					return nil, errors.New("busy")
				case method == "tools/list":
					lists.Add(1)
				}
				return next(ctx, method, req)
			}
		})
		l := Keep(Server{Name: "example", Command: []string{"x"}}, inMemory(func(ctx context.Context, _ Server, in io.Reader, out io.Writer) {
			connects.Add(1)
			_ = server.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}})
		}))
		<-l.Tried()
		names := func() (all []string) {
			for _, x := range l.Tools() {
				all = append(all, strings.TrimPrefix(x.Spec().Name, "mcp__example__"))
			}
			return all
		}
		handler := func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{}, nil, nil
		}
		sdk.AddTool(server, &sdk.Tool{Name: "another"}, handler)
		server.RemoveTools("big", "wait")
		time.Sleep(3 * time.Second) // in the bubble
		if got := strings.Join(names(), " "); got != "another echo structured" || len(l.Trouble()) > 0 {
			t.Errorf("tools %q, trouble %q", got, l.Trouble())
		}
		busy.Store(true)
		sdk.AddTool(server, &sdk.Tool{Name: "later"}, handler)
		time.Sleep(3 * time.Second)
		busy.Store(false)
		if got := strings.Join(names(), " "); got != "another echo structured" {
			t.Errorf("from a server that does not say: %q", got)
		}
		time.Sleep(2 * time.Minute)
		if got := strings.Join(names(), " "); got != "another echo later structured" {
			t.Errorf("from one that says it in the end: %q", got)
		}
		before := lists.Load()
		for i := range 100 {
			sdk.AddTool(server, &sdk.Tool{Name: fmt.Sprint("tool", i)}, handler)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		if n := lists.Load() - before; n < 5 || n > 15 || len(l.Tools()) != 104 {
			t.Errorf("%d tools after %d lists", len(l.Tools()), n)
		}
		server.RemoveTools("another", "later", "echo", "structured")
		for i := range 100 {
			server.RemoveTools(fmt.Sprint("tool", i))
		}
		time.Sleep(3 * time.Second)
		if trouble := strings.Join(l.Trouble(), " "); len(l.Tools()) != 0 || !strings.Contains(trouble, "offers no tools") {
			t.Errorf("tools %q, trouble %q", names(), trouble)
		}
		if n := connects.Load(); n != 1 {
			t.Errorf("connected %d times", n)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestProgramThatTalksNowAndThen: a program may send small notifications for as long as it
// lives.
func TestProgramThatTalksNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var connects atomic.Int64
		l := Keep(Server{Name: "example", Command: []string{"x"}}, inMemory(func(ctx context.Context, s Server, in io.Reader, out io.Writer) {
			connects.Add(1)
			go func() {
				for {
					select {
					case <-ctx.Done():
						return
					case <-time.After(20 * time.Second):
					}
					fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}`+"\n", strings.Repeat("y", 80_000))
				}
			}()
			serveExample(ctx, s, in, out)
		}))
		<-l.Tried()
		time.Sleep(15 * time.Minute) // 3.6 MB
		if n := len(l.Tools()); n != 4 || connects.Load() != 1 {
			t.Errorf("%d tools after %d connections", n, connects.Load())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestServerThatCannotTell: over HTTP nothing comes unasked, so that a server whose tools change
// is asked for them now and then.
func TestServerThatCannotTell(t *testing.T) {
	t.Parallel()
	server := exampleServer()
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "server/discover" { // of a later protocol, in which the client listens
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no"}
			}
			return next(ctx, method, req)
		}
	})
	srv := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(srv.Close)
	l := &Link{server: Server{Name: "example", URL: srv.URL}, opts: Options{AllowLoopback: true}.withDefaults()}
	conn, _ := l.connect(t.Context())
	if conn == nil || len(l.Tools()) != 4 {
		t.Fatalf("%d tools, trouble %q", len(l.Tools()), l.Trouble())
	}
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { l.follow(ctx, conn, 10*time.Millisecond) })
	server.RemoveTools("big", "wait")
	waittest.Until(t, "the tools of now", func() bool { return len(l.Tools()) == 2 })
	cancel()
	following.Wait()
	if err := conn.close(); err != nil {
		t.Error(err)
	}
}

// Finding 9: a server that once connected was never tried again.
func TestFinding9EndedServerIsConnectedToAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var starts atomic.Int64
		die := make(chan struct{})
		l := Keep(Server{Name: "example", Command: []string{"x"}}, inMemory(func(ctx context.Context, s Server, in io.Reader, out io.Writer) {
			if starts.Add(1) == 2 {
				return // it ends at once, and is tried a third time
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() {
				select {
				case <-die:
					cancel()
				case <-ctx.Done():
				}
			}()
			serveExample(ctx, s, in, out)
		}))
		<-l.Tried()
		if n := len(l.Tools()); n != 4 || len(l.Trouble()) > 0 {
			t.Errorf("%d tools, trouble %q", n, l.Trouble())
		}
		die <- struct{}{}
		synctest.Wait()
		if n := len(l.Tools()); n != 0 || !strings.Contains(fmt.Sprint(l.Trouble()), "has ended") {
			t.Errorf("after its end: %d tools, trouble %q", n, l.Trouble())
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := len(l.Tools()); n != 4 || starts.Load() != 3 {
			t.Errorf("after 20 s: %d tools, %d starts, trouble %q", n, starts.Load(), l.Trouble())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Finding 9: a server that does not answer held everybody who asked for tools.
func TestFinding9SlowServerDelaysNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var starts atomic.Int64
		l := Keep(Server{Name: "slow", Command: []string{"x"}}, inMemory(func(ctx context.Context, _ Server, _ io.Reader, _ io.Writer) {
			starts.Add(1)
			<-ctx.Done()
		}))
		before := time.Now()
		synctest.Wait()
		if n := len(l.Tools()); n != 0 || !strings.Contains(fmt.Sprint(l.Trouble()), "is being connected to") {
			t.Errorf("%d tools, trouble %q", n, l.Trouble())
		}
		if took := time.Since(before); took > 0 {
			t.Errorf("asking takes %s", took)
		}
		time.Sleep(time.Hour)
		if n := starts.Load(); n < 5 || n > 30 {
			t.Errorf("%d attempts in an hour", n)
		}
		if !strings.Contains(fmt.Sprint(l.Trouble()), "did not answer within 8s") {
			t.Errorf("trouble is %q", l.Trouble())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Finding 9: what cannot work is said and not tried for ever; what is missing may
// be installed later.
func TestFinding9MissingProgramIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var starts atomic.Int64
		opts := Options{Start: func(context.Context, Server) (*Process, error) {
			starts.Add(1)
			return nil, fault.New(fault.NotFound, "no such program")
		}}
		missing := Keep(Server{Name: "missing", Command: []string{"/opt/none"}}, opts)
		wrong := Keep(Server{Name: "wrong", URL: "ftp://example.com"}, opts)
		time.Sleep(10 * time.Minute)
		if got := fmt.Sprint(missing.Trouble()); !strings.Contains(got, `"missing" is not installed here (there is no program "/opt/none"); its tools are unavailable.`) || starts.Load() < 5 {
			t.Errorf("trouble is %s after %d attempts", got, starts.Load())
		}
		if got := fmt.Sprint(wrong.Trouble()); !strings.Contains(got, "must begin with https://") {
			t.Errorf("trouble is %s", got)
		}
		for _, l := range []*Link{missing, wrong} {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestProgressKeepsACallAlive: a server that reports progress has more time, though not for ever.
func TestProgressKeepsACallAlive(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reports int // one every 40 s
		want    string
		takes   time.Duration
	}{
		"Answers": {5, "worked", 200 * time.Second},
		"Stalls":  {0, `The MCP server "slow" did not answer within 1m0s; the call may have had an effect.`, time.Minute},
		"Endless": {1000, `The MCP server "slow" did not answer within 10m0s; the call may have had an effect.`, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := sdk.NewServer(&sdk.Implementation{Name: "slow", Version: "1"}, nil)
				sdk.AddTool(s, &sdk.Tool{Name: "work"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
					for n := range tt.reports {
						select {
						case <-ctx.Done():
							return nil, nil, ctx.Err()
						case <-time.After(40 * time.Second):
						}
						if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(n)}); err != nil {
							return nil, nil, err
						}
					}
					if tt.reports == 0 {
						<-ctx.Done()
					}
					return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "worked"}}}, nil, nil
				})
				tools, problems := connect(t, inMemory(func(ctx context.Context, _ Server, in io.Reader, out io.Writer) {
					_ = s.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}})
				}), Server{Name: "slow", Command: []string{"x"}})
				if len(problems) > 0 {
					t.Fatal(problems)
				}
				began := time.Now()
				got, err := call(t, tools["mcp__slow__work"], `{}`)
				if !strings.Contains(got.Content+fault.Public(err), tt.want) || time.Since(began) != tt.takes {
					t.Errorf("after %s: %q, %v", time.Since(began), got.Content, err)
				}
			})
		})
	}
}

// TestProgramsOfOneProtocol: those that know the handshake only end, as Rust's SDK had it, or say
// nothing, as FastMCP's, when they are asked for something else; the latest refuse it.
func TestProgramsOfOneProtocol(t *testing.T) {
	t.Parallel()
	for name, surprised := range map[string]string{
		"ends":   "",
		"silent": " ",
		"modern": `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hello, answer := "initialize", `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}}`
			if name == "modern" {
				hello, answer = "server/discover", `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`
			}
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				tools, problems := connect(t, inMemory(func(_ context.Context, _ Server, in io.Reader, out io.Writer) {
					known := false
					for lines := bufio.NewScanner(in); lines.Scan(); {
						var m struct {
							ID     json.RawMessage `json:"id"`
							Method string          `json:"method"`
						}
						if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
							continue
						}
						switch known = known || m.Method == hello; {
						case !known && surprised == "":
							return
						case !known && surprised != " ":
							fmt.Fprintf(out, surprised, m.ID)
						case m.Method == hello:
							fmt.Fprintf(out, answer+"\n", m.ID)
						case m.Method == "tools/list":
							fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, oneTool)
						}
					}
				}), Server{Name: "x", Command: []string{"x"}})
				if len(tools) != 1 || len(problems) > 0 || time.Since(begun) > time.Second {
					t.Errorf("%d tools after %s, %v", len(tools), time.Since(begun), problems)
				}
			})
		})
	}
}

// TestAddressesThatKnowTheHandshakeOnly: what they say to anything else, or that they say
// nothing, does not keep them from being used.
func TestAddressesThatKnowTheHandshakeOnly(t *testing.T) {
	t.Parallel()
	for name, surprised := range map[string]http.HandlerFunc{
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"empty":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"page":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>no</html>") },
		"broken": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "no")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return exampleServer() }, nil)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				if strings.Contains(string(body), `"server/discover"`) {
					surprised(w, r)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				handler.ServeHTTP(w, r)
			}))
			t.Cleanup(srv.Close)
			tools, problems := connect(t, Options{AllowLoopback: true, ConnectTimeout: 4 * time.Second}, Server{Name: "example", URL: srv.URL})
			if len(tools) != 4 || len(problems) > 0 {
				t.Errorf("%d tools, %v", len(tools), problems)
			}
		})
	}
}
