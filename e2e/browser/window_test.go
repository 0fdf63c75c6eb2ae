package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"remote-agent/e2e/internal/need"
	"remote-agent/internal/waittest"
)

// window is a tab of a browser with a profile of its own.
type window struct {
	t    testing.TB
	ctx  context.Context
	base string // the bot's address

	mu      sync.Mutex
	foreign []string // what was asked of other addresses
	broken  []string // what a page's script or policy complained about
}

// open starts a browser. It is ended with the test, which fails if a page asked another
// address for something, or its script failed.
func open(t testing.TB, base string, options ...chromedp.ExecAllocatorOption) *window {
	t.Helper()
	all := append(chromedp.DefaultExecAllocatorOptions[:], //nolint:gocritic // a copy
		chromedp.ExecPath(need.Chromium(t)), chromedp.NoSandbox, chromedp.Flag("headless", "new"),
		// What the browser itself would like to ask its maker.
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-domain-reliability", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	allocator, end := chromedp.NewExecAllocator(context.Background(), append(all, options...)...)
	t.Cleanup(end)
	w := &window{t: t, base: base}
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithListener(w.watch))
	w.ctx = ctx
	t.Cleanup(func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.foreign) > 0 {
			t.Errorf("pages asked other addresses: %q", w.foreign)
		}
		if len(w.broken) > 0 {
			t.Errorf("scripts failed: %q", w.broken)
		}
	})
	w.run(command(network.Enable, network.EnableParams{}))
	w.run(command(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}))
	return w
}

// command is a command of the browser's protocol, without an answer.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, c, params)
		return chromedp.Void{}, err
	}
}

func (w *window) watch(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if own := err == nil && (u.Scheme == "data" || u.Scheme == "blob" || u.Scheme+"://"+u.Host == w.base); !own {
			w.foreign = append(w.foreign, e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		w.broken = append(w.broken, e.ExceptionDetails.Text)
	}
}

// run does something in the browser, or ends the test.
func (w *window) run(actions ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	if err := chromedp.Do(w.ctx, actions...); err != nil {
		w.t.Fatal(err)
	}
}

// size makes the window so large, in CSS pixels.
func (w *window) size(width, height int64) {
	w.t.Helper()
	w.run(chromedp.EmulateViewport(width, height))
}

// likes says which theme the system has.
func (w *window) likes(theme string) {
	w.t.Helper()
	w.run(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
	}))
}

// withoutScript switches JavaScript off.
func (w *window) withoutScript() {
	w.t.Helper()
	w.run(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
}

// visit opens a path of the bot, or a whole address.
func (w *window) visit(path string) {
	w.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = w.base + path
	}
	ask(w, chromedp.Navigate(path))
}

// ask does something that may be done again, until no page is left for another one
// meanwhile: the one that is open may load itself, and what a click leads to comes when the
// machine has time for it.
func ask[T any](w *window, action chromedp.Action[T]) (answer T) {
	w.t.Helper()
	var err error
	w.until("a page that stays", func() bool {
		answer, err = chromedp.Run(w.ctx, action)
		return err == nil || !isBetweenPages(err)
	}, func() string { return err.Error() })
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

// isBetweenPages reports whether an error says only that a page was left for another one.
func isBetweenPages(err error) bool {
	return slices.ContainsFunc([]string{
		"net::ERR_ABORTED", "Inspected target navigated or closed", "Execution context was destroyed",
		"Cannot find context with specified id", "Cannot find default execution context",
	}, func(part string) bool { return strings.Contains(err.Error(), part) })
}

// path is where the browser is.
func (w *window) path() string {
	w.t.Helper()
	return strings.TrimPrefix(ask(w, chromedp.Location()), w.base)
}

// text is what can be read on the page: nothing before it has come wholly, with what its
// scripts do to it.
func (w *window) text() string {
	text, err := chromedp.Run(w.ctx, chromedp.Evaluate[string](`document.readyState === "complete" ? document.body.innerText : ""`))
	if err != nil { // between two pages there is nothing to read
		return ""
	}
	return text
}

// sees waits until a page shows all parts, without loading it again.
func (w *window) sees(parts ...string) {
	w.t.Helper()
	last := ""
	w.until(fmt.Sprintf("the page shows %q", parts), func() bool {
		last = w.text()
		return hasAll(last, parts)
	}, func() string { return w.path() + " shows:\n" + last })
}

// finds loads a page until it shows all parts: what a person without JavaScript does.
func (w *window) finds(path string, parts ...string) {
	w.t.Helper()
	last := ""
	w.until(fmt.Sprintf("%s shows %q", path, parts), func() bool {
		w.visit(path)
		last = w.text()
		return hasAll(last, parts)
	}, func() string { return "it shows:\n" + last })
}

// links are the paths that the links of a page lead to.
func (w *window) links(selector string) []string {
	w.t.Helper()
	return ask(w, chromedp.Evaluate[[]string](fmt.Sprintf(
		"[...new Set([...document.querySelectorAll(%q)].map((a) => a.getAttribute('href')))]", selector)))
}

// number is what a script counts on the page.
func (w *window) number(script string) int64 {
	w.t.Helper()
	return ask(w, chromedp.Evaluate[int64](script))
}

// waits until a script is true of the page. Between two pages nothing is.
func (w *window) waits(what, script string) {
	w.t.Helper()
	w.until(what, func() bool {
		is, err := chromedp.Run(w.ctx, chromedp.Evaluate[bool](script))
		return err == nil && is
	}, w.text)
}

// until waits, and tells at the end of its patience what there was instead.
func (w *window) until(what string, ok func() bool, instead func() string) {
	w.t.Helper()
	ctx := waittest.Context(context.Background(), w.t, time.Minute)
	for !ok() {
		select {
		case <-ctx.Done():
			w.t.Fatalf("waited for: %s\n%s", what, instead())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func hasAll(text string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// named finds buttons and links by what they say.
func named(label string) chromedp.Search {
	return chromedp.Search(fmt.Sprintf("//button[normalize-space()=%[1]q] | //a[normalize-space()=%[1]q] | //summary[normalize-space()=%[1]q]", label))
}

// comes waits until the page that is open has come wholly: until then it can move under
// the pointer.
func (w *window) comes() {
	w.t.Helper()
	w.waits("the whole page", `document.readyState === "complete"`)
}

// presses clicks the first button or link of a name as a person does.
func (w *window) presses(label string) {
	w.t.Helper()
	w.comes()
	ctx := waittest.Context(w.ctx, w.t, 30*time.Second)
	if err := chromedp.Do(ctx, chromedp.Click(named(label), chromedp.NodeVisible)); err != nil {
		w.t.Fatalf("press %q on %s: %v\n%s", label, w.path(), err, w.text())
	}
}

// writes types into the field that a selector finds, in place of what is there.
func (w *window) writes(selector chromedp.CSS, text string) {
	w.t.Helper()
	w.comes()
	ctx := waittest.Context(w.ctx, w.t, 30*time.Second)
	selects := chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector(%q).select()", selector))
	if err := chromedp.Do(ctx, chromedp.WaitVisible(selector), selects, chromedp.SendKeys(selector, text)); err != nil {
		w.t.Fatalf("write into %q on %s: %v\n%s", selector, w.path(), err, w.text())
	}
}

// picture keeps what is visible, in a folder that can be looked at, where one is named.
func (w *window) picture(name string) {
	w.t.Helper()
	dir := os.Getenv("E2E_PICTURES")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(w.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		w.t.Fatal(err)
	}
}
