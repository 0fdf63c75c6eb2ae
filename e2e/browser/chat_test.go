package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"remote-agent/e2e/internal/bot"
	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
)

func TestAChatInTheBrowser(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.signsIn(b.OwnerLink())
	talk(b, w, w.sees)
	if w.number("document.querySelectorAll('.offline:not(:empty)').length") != 0 {
		t.Error("the page has lost its connection")
	}
}

func TestAChatWithoutJavaScript(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.withoutScript()
	w.size(320, 640)
	w.signsIn(b.OwnerLink())
	talk(b, w, func(parts ...string) {
		t.Helper()
		path, _, _ := strings.Cut(w.path(), "#") // with it, the page that is open would only be scrolled
		w.finds(path, parts...)
	})
}

// What is written while a message is on its way stays, the same words are said again, and
// what is too much is said before it is sent.
func TestWritingOnWhileItIsSent(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.signsIn(b.OwnerLink())
	w.visit("/chat")
	for _, said := range []string{"One.", "Two.", "Three."} {
		b.Model.Enqueue(openai.Text(said))
	}
	w.writes("textarea[name=text]", "begin")
	w.presses("Send")
	w.sees("All conversations", "One.")
	w.number(`(() => { document.querySelector("#say button").focus(); return 1 })()`)
	field := func() string {
		return ask(w, chromedp.Evaluate[string](`document.querySelector("textarea[name=text]").value`))
	}
	count := func() int64 {
		return w.number(`[...document.querySelectorAll("article.user pre")].filter((e) => e.textContent === "go on").length`)
	}
	// The answer to the first form that is sent comes when it is let through, and what the
	// page shows is not asked for again from then on.
	w.run(chromedp.Evaluate[chromedp.Void](`(() => {
		const fetched = window.fetch;
		let sent = false, held = false;
		window.fetch = async (...asked) => {
			if (held && asked[1]?.headers?.["Bot-Part"]) await new Promise((show) => { window.show = () => { held = false; show(); }; });
			const answer = await fetched(...asked);
			if (asked[1]?.method === "POST" && !sent) {
				sent = true;
				await new Promise((pass) => { window.pass = () => { held = true; pass(); }; });
			}
			return answer;
		};
	})()`))
	w.run(chromedp.Evaluate[chromedp.Void](`(() => {
		const text = document.querySelector("textarea[name=text]");
		text.value = "go on";
		text.form.requestSubmit();
		text.value = "go on further";
	})()`))
	w.sees("Two.")
	w.waits("the answer to the form", "!!window.pass")
	w.number(`(() => { pass(); return 1 })()`)
	w.until("what was written meanwhile stays", func() bool { return field() == "further" }, w.text)
	w.run(chromedp.Evaluate[chromedp.Void](`(() => {
		const text = document.querySelector("textarea[name=text]");
		text.value = "go on";
		text.form.requestSubmit();
		text.form.requestSubmit();
	})()`))
	w.until("the same words are sent again", func() bool { return field() == "" }, w.text)
	w.number(`(() => { show(); return 1 })()`)
	w.sees("Three.")
	if w.number(`document.activeElement === document.querySelector("#say button") ? 1 : 0`) == 0 {
		t.Error("the button that sent it has lost the focus: who uses keys begins anew at the top of the page")
	}
	w.until("the same words stand there again", func() bool { return count() == 2 && field() == "" }, w.text)

	for name, files := range map[string]string{
		"at most 10 files": `Array.from({length: 40}, (_, i) => new File(["x"], "f" + i))`,
		"larger than 20":   `[new File([new Uint8Array(30 << 20)], "large")]`,
		"together":         `[1, 2].map((i) => new File([new Uint8Array(15 << 20)], "f" + i))`,
	} {
		w.run(chromedp.Evaluate[chromedp.Void](`(() => {
			const all = new DataTransfer();
			` + files + `.forEach((f) => all.items.add(f));
			document.getElementById("say").dispatchEvent(new DragEvent("drop", {dataTransfer: all, bubbles: true, cancelable: true}));
		})()`))
		said, err := chromedp.Run(w.ctx, chromedp.Evaluate[string](`(() => {
			const field = document.querySelector("input[type=file]"), said = field.validationMessage;
			field.form.reset();
			field.dispatchEvent(new Event("change"));
			return field.validationMessage ? "still: " + field.validationMessage : said;
		})()`))
		if err != nil || !strings.Contains(said, name) || strings.HasPrefix(said, "still") {
			t.Errorf("%s: %q, %v", name, said, err)
		}
	}
}

// What begins a conversation is kept where the bot is not there, as what goes on with one is.
func TestAFirstMessageWithoutAConnection(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.signsIn(b.OwnerLink())
	w.visit("/chat")
	w.writes("textarea[name=text]", "a long question")
	b.Stop()
	w.number(`(() => { document.querySelector("#say button").click(); return 1 })()`)
	w.sees("Not sent: there is no connection.")
	b.Start()
	b.Model.Enqueue(openai.Text("A short answer."))
	w.presses("Send")
	w.sees("All conversations", "a long question", "A short answer.")
	nothing := func(where string) {
		t.Helper()
		if left := w.number(`document.querySelector("textarea[name=text]").value.length`); left != 0 {
			t.Errorf("%s: %d letters of what was sent stand there again", where, left)
		}
	}
	w.run(chromedp.NavigateBack())
	w.sees("Your conversations")
	nothing("back")
	w.visit("/chat")
	nothing("visited again")
}

// Files are taken wherever they are dropped on the page. A picture that is pasted is, too;
// what is copied from a spreadsheet is pasted as text, though a picture of it comes along.
func TestWhatIsDroppedAndPasted(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.signsIn(b.OwnerLink())
	w.visit("/chat")
	for _, tt := range []struct {
		event, on, texts string
		taken            int64
	}{
		{"drop", "main h1", "", 1},
		{"dragover", "main h1", "", 0},
		{"paste", "textarea", "", 1},
		{"paste", "textarea", "text/html", 1}, // of a page
		{"paste", "textarea", "text/plain", 1},
		{"paste", "textarea", "text/plain text/html", 0},
	} {
		got := w.number(`(() => {
			const all = new DataTransfer(), field = document.querySelector("input[type=file]");
			field.form.reset();
			all.items.add(new File(["x"], "picture.png", {type: "image/png"}));
			"` + tt.texts + `".split(" ").filter(Boolean).forEach((kind) => all.setData(kind, "1 2"));
			const is = {bubbles: true, cancelable: true, dataTransfer: all, clipboardData: all};
			const e = "` + tt.event + `" === "paste" ? new ClipboardEvent("paste", is) : new DragEvent("` + tt.event + `", is);
			document.querySelector("` + tt.on + `").dispatchEvent(e);
			return field.files.length + (e.defaultPrevented ? 10 : 0);
		})()`)
		want := tt.taken
		if tt.taken > 0 || tt.event == "dragover" {
			want += 10
		}
		if got != want {
			t.Errorf("%s on %s with %q: %d, want %d", tt.event, tt.on, tt.texts, got, want)
		}
	}
}

// On paper, a page is what it says: dark on white, and whole.
func TestAPageIsPrinted(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.signsIn(b.OwnerLink())
	w.visit("/chat")
	b.Model.Enqueue(openai.Text("```\n" + strings.Repeat("line\n", 100) + strings.Repeat("x", 500) + "\n```"))
	w.writes("textarea[name=text]", "print this")
	w.presses("Send")
	w.sees("All conversations", "print this", "line")
	w.presses("dark")
	w.waits("the whole page is dark", `document.documentElement.dataset.theme === "dark" && document.readyState === "complete"`)
	w.run(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}))
	if color := w.number(`+getComputedStyle(document.documentElement).color.match(/\d+/)[0]`); color > 100 {
		t.Errorf("letters have %d of 255 red on white paper", color)
	}
	for _, selector := range []string{"header", "#say", "footer"} {
		if w.number(`document.querySelector("`+selector+`").getClientRects().length`) > 0 {
			t.Errorf("%s is printed", selector)
		}
	}
	if cut := w.number(`[...document.querySelectorAll("pre")].filter((e) => e.scrollHeight > e.clientHeight + 2 || e.scrollWidth > e.clientWidth + 2).length`); cut > 0 {
		t.Error("a part of a long text is not printed")
	}
}

// What is written on the page of a session is kept where the bot is not there, too.
func TestAMessageToASessionWithoutAConnection(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.signsIn(b.OwnerLink())
	w.visit("/chat")
	b.Model.Enqueue(openai.Text("One."))
	w.writes("textarea[name=text]", "begin")
	w.presses("Send")
	w.sees("All conversations", "One.", "Session")
	w.number(`(() => { document.querySelector('a[href^="/sessions/"]').click(); return 1 })()`)
	w.sees("Starts the next turn.")
	written := func(want string) {
		t.Helper()
		if text := ask(w, chromedp.Evaluate[string](`document.querySelector("textarea[name=text]").value`)); text != want {
			t.Errorf("the field has %q; want %q", text, want)
		}
	}
	path := w.path()
	w.writes("textarea[name=text]", "a long question")
	b.Stop()
	w.presses("Send")
	w.sees("Not sent: there is no connection.")
	b.Start()
	w.visit(path)
	written("a long question")
	b.Model.Enqueue(openai.Text("Two."))
	w.presses("Send")
	w.sees("Sent. The answer appears here", "Two.")
	written("")
	w.writes("textarea[name=text]", "/help all")
	w.presses("Send")
	w.sees("list the repositories", "Continue")
	w.visit(path)
	written("")
}

// What is refused stays, with its files, and can be sent again.
func TestARefusedMessageKeepsItsFiles(t *testing.T) {
	t.Parallel()
	b, w := started(t)
	w.signsIn(b.OwnerLink())
	w.visit("/chat")
	w.writes("textarea[name=text]", "see the file")
	w.number(`(() => {
		const all = new DataTransfer();
		all.items.add(new File(["x"], "file.txt"));
		document.getElementById("say").dispatchEvent(new DragEvent("drop", {dataTransfer: all, bubbles: true, cancelable: true}));
		document.querySelector("#say [name=token]").value = "of another page";
		return 1;
	})()`)
	w.presses("Send")
	w.sees("Not sent. You have signed in again since this page was opened. Press Send again.")
	if kept := w.number(`document.querySelector("textarea[name=text]").value.length * 10 + document.querySelector("input[type=file]").files.length`); kept != 121 {
		t.Errorf("the text and the files are not kept: %d", kept)
	}
	b.Model.Enqueue(openai.Text("I see it."))
	w.presses("Send")
	w.sees("All conversations", "see the file", "file.txt", "I see it.")
}

// talk says something, reads the answer while it is written, stops it, sends a file, and
// goes on behind a restart. sees waits until the page that is open shows something.
func talk(b *bot.Bot, w *window, sees func(parts ...string)) {
	w.t.Helper()
	w.visit("/chat")
	gate := emulator.NewGate()
	b.Model.Enqueue(openai.Reply(openai.Delta("It adds **two** numbers, "), openai.Gate(gate), openai.Delta("and prints the sum.")))
	w.writes("textarea[name=text]", "what does it do?")
	w.presses("Send")
	w.sees("All conversations", "what does it do?") // it stands there when the page comes
	sees("what does it do?", "It adds two numbers,", "Stop")
	gate.Open()
	sees("and prints the sum.", "answered")

	never := emulator.NewGate()
	b.Model.Enqueue(openai.Reply(openai.Delta("This takes long. "), openai.Gate(never), openai.Delta("never said")))
	w.writes("textarea[name=text]", "take your time")
	w.presses("Send")
	w.sees("take your time")
	sees("This takes long.", "Stop")
	w.presses("Stop")
	w.sees("topp")
	w.waits("what stopped is seen and heard", `document.activeElement.id === "said" && document.activeElement.getBoundingClientRect().bottom <= innerHeight`)
	sees("stopped")
	never.Open()

	file := filepath.Join(w.t.TempDir(), "notes.txt")
	if err := os.WriteFile(file, []byte("The budget is 42."), 0o600); err != nil {
		w.t.Fatal(err)
	}
	b.Model.Enqueue(openai.Text("I have read it."))
	w.run(chromedp.SetUploadFiles(chromedp.CSS("input[type=file]"), []string{file}))
	w.writes("textarea[name=text]", "read this")
	w.presses("Send")
	w.sees("notes.txt")
	sees("notes.txt", "I have read it.")

	b.Model.Enqueue(openai.Text("1. Add the flag.\n2. Test it."))
	w.writes("textarea[name=text]", "/plan add a --json flag")
	w.presses("Send")
	w.sees("/plan add a --json flag")
	sees("Plan p-1, version 1", "Add the flag.")
	b.Restart()
	w.writes("textarea[name=text]", "/edit p-1 1. Add the flag.")
	w.presses("Send")
	w.waits("the message was taken, and the field is empty again", `document.querySelector("textarea[name=text]").value === ""`)
	sees("Plan p-1, version 2")
	b.Model.Enqueue(openai.Text("The flag is there."))
	w.presses("Approve and run")
	w.sees("It runs now.")
	sees("The flag is there.")
	w.finds("/chat", "what does it do?")
}
