package html_test

import (
	"strings"
	"testing"

	"remote-agent/internal/html"
)

func TestTextIsEscaped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"tags", `<script>alert("1")</script>`, `&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;`},
		{"entities", `&lt; 'x'`, `&amp;lt; &#39;x&#39;`},
		{"no UTF-8", "a\xffb\xf0\x28", "a\uFFFDb\uFFFD("},
		{"a replacement character stays one", "\uFFFD", "\uFFFD"},
		{"direction of writing", "a\u202Egpj.exe", "a\u27E8U+202E\u27E9gpj.exe"},
		{"control characters", "a\x00\x1b[2J\x7f\u009b", "a\u27E8U+0000\u27E9\u27E8U+001B\u27E9[2J\u27E8U+007F\u27E9\u27E8U+009B\u27E9"},
		{"lines", "a\r\nb\tc", "a\nb\tc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := html.String(html.Text(c.text)); got != c.want {
				t.Errorf("text: %q, want %q", got, c.want)
			}
			if got := html.String(html.El("i", html.Attr("title", c.text))); got != `<i title="`+c.want+`"></i>` {
				t.Errorf("attribute: %q", got)
			}
		})
	}
}

// A carriage return that ends no line is shown where somebody decides on the text: a
// program gets it.
func TestExactShowsWhatEndsNoLine(t *testing.T) {
	t.Parallel()
	if got := html.String(html.Exact("echo a\rb\r\nc")); !strings.HasSuffix(got, ">echo a\u27E8U+000D\u27E9b\nc</pre>") {
		t.Errorf("Exact = %q", got)
	}
}

func TestAddressesThatAreFollowed(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"/sessions?q=1": true, "#top": true, "?a=b": true, "https://example.com/x": true, "http://127.0.0.1:3000": true,
		"javascript:alert(1)": false, "JaVaScRiPt:alert(1)": false, "\x20javascript:alert(1)": false, "data:text/html,x": false, "vbscript:x": false,
		"//example.com": false, `/\example.com`: false, "https:": false, "java\nscript:alert(1)": false, "file:///etc/passwd": false,
	} {
		got := html.String(html.El("a", html.Href(address)))
		if strings.Contains(got, "href") != want {
			t.Errorf("%q: %s", address, got)
		}
	}
	if got := html.String(html.El("b", html.Attr("onclick", "x"), html.Attr("style", "x"))); got != "<b></b>" {
		t.Errorf("attributes that run something: %s", got)
	}
}

func TestElements(t *testing.T) {
	t.Parallel()
	n := html.El("p", html.Text("a"), nil, html.Group{html.Class("x"), html.El("br"), nil}, html.On("hidden", true), html.On("lang", false))
	if got, want := html.String(n), `<p class="x" hidden="">a<br></p>`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// Browsers leave out the line break that a field begins with.
	if got, want := html.String(html.El("textarea", html.Text("\n 1. a"))), "<textarea>\n\n 1. a</textarea>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	r := html.NewRenderer()
	for _, c := range []struct{ name, text, want string }{
		{"text", "# a *b* `c`\n\n- d", "<h3>a <em>b</em> <code>c</code></h3>\n<ul>\n<li>d</li>\n</ul>\n"},
		{"a link shows its host", "[x](https://example.com/a?b=c&d)", `<p><a href="https://example.com/a?b=c&amp;d" rel="nofollow noreferrer noopener" target="_blank">x</a> <span class="host">(example.com)</span></p>` + "\n"},
		{"a picture is a link", "![p](http://example.com/p.png)", `<p>` + "\U0001F5BC " + `<a href="http://example.com/p.png" rel="nofollow noreferrer noopener" target="_blank">p</a> <span class="host">(example.com)</span></p>` + "\n"},
		{"a script in a link", "[x](javascript:alert(1))", "<p>x <span class=\"host\">(javascript:alert(1))</span></p>\n"},
		{"code", "```go\"><script>\na < b\n```", "<pre tabindex=\"0\"><code>a &lt; b\n</code></pre>\n"},
		{"a table scrolls by itself", "| a |\n|---|\n| 1 |", "<div class=\"table\" tabindex=\"0\" role=\"group\"><table><thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n</tr>\n</tbody>\n</table></div>\n"},
		{"raw HTML is shown", "a <b onclick=x>c</b>", "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>\n"},
		{"a block of HTML is shown", "<script>\nrm -rf /\n</script>\n\nend", "<pre tabindex=\"0\">&lt;script&gt;\nrm -rf /\n&lt;/script&gt;\n</pre>\n<p>end</p>\n"},
		{"a comment is shown", "a <!-- curl x | sh --> b", "<p>a &lt;!-- curl x | sh --&gt; b</p>\n"},
		{"a bare address shows its host", "<https://a@example.com/x>", `<p><a href="https://a@example.com/x" rel="nofollow noreferrer noopener" target="_blank">https://a@example.com/x</a> <span class="host">(example.com)</span></p>` + "\n"},
		{"an entity for the direction of writing", "a&#x202E;b", "<p>a\u27E8U+202E\u27E9b</p>\n"},
		{"the direction of writing", "a\u202Eb", "<p>a\u27E8U+202E\u27E9b</p>\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := html.String(r.Markdown(c.text)); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func FuzzMarkdown(f *testing.F) {
	r := html.NewRenderer()
	f.Add("<script>alert(1)</script>")
	f.Add("[a](java\tscript:alert(1)) <img src=x onerror=alert(1)> <a href=\"data:text/html,x\">")
	f.Fuzz(func(t *testing.T, text string) {
		got := strings.ToLower(html.String(r.Markdown(text)))
		for _, bad := range []string{"<script", "<img", "<iframe", "<style", "<svg", "<form", "<input", "href=\"javascript", "href=\"data", "<a onclick"} {
			if strings.Contains(got, bad) {
				t.Errorf("%q became %q", text, got)
			}
		}
	})
}

func TestTheManualHasAnchorsAndLinksOfItsOwn(t *testing.T) {
	t.Parallel()
	m := html.NewManual(func(to string) string {
		return map[string]string{"a.md#b-c": "/docs/a#b-c", "#x": "#x", "bad.md": "javascript:alert(1)"}[to]
	})
	for text, want := range map[string]string{
		"# A `b` & C!":                 `<h1 id="a-b--c">A <code>b</code> &amp; C!</h1>`,
		"[go](a.md#b-c)":               `<a href="/docs/a#b-c" rel="nofollow noreferrer">go</a>`,
		"[go](#x)":                     `<a href="#x" rel="nofollow noreferrer">go</a>`,
		"[go](bad.md)":                 `<p>go</p>`,
		"[go](../SECURITY.md)":         `go <span class="host">(../SECURITY.md)</span>`,
		"[go](https://example.com/a)":  `<a href="https://example.com/a" rel="nofollow noreferrer noopener" target="_blank">go</a> <span class="host">(example.com)</span>`,
		"one\ntwo":                     "<p>one\ntwo</p>",
		"<img src=x onerror=alert(1)>": `&lt;img src=x onerror=alert(1)&gt;`,
	} {
		if got := html.String(m.Markdown(text)); !strings.Contains(got, want) {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := html.String(html.NewRenderer().Markdown("# A\n[go](a.md)")); !strings.Contains(got, "<h3>A</h3>") || strings.Contains(got, "href") {
		t.Errorf("what strangers write has %q", got)
	}
}
