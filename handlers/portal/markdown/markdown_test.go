package markdown_test

import (
	"errors"
	"strings"
	"testing"

	"portal/handlers/portal/markdown"
)

func convert(t *testing.T, main string) string {
	t.Helper()
	text, err := markdown.Convert([]byte("<nav>menu</nav><main>"+main+"</main>"), func(address string) (string, error) {
		return "https://portal.example.com" + address, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", main, err)
	}
	return string(text)
}

func TestElementsBecomeMarkdown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, html, want string }{
		{"headings and paragraphs", "<h1>One</h1>\n<p>First\n  line.</p><section><h3>Two</h3><p></p></section>", "# One\n\nFirst line.\n\n### Two"},
		{"text beside a block", "<div>before<p>inside</p>after</div>", "before\n\ninside\n\nafter"},
		{"emphasis and code", "<p>Press <strong>Generate key</strong>, then <code>curl  -s</code>.</p>", "Press **Generate key**, then `curl -s`."},
		{"link", `<p>See <a href="/docs#x">the <code>x</code> page</a>.</p>`, "See [the `x` page](https://portal.example.com/docs#x)."},
		{"link of a heading to itself", `<h2><a class="anchor" href="#x">Title</a></h2>`, "## Title"},
		{"link to another format", `<p><a rel="alternate" href="/docs.md">View</a></p><p>Text</p>`, "Text"},
		{"list", "<ul>\n<li>one</li>\n<li>two <code>2</code></li>\n</ul>", "- one\n- two `2`"},
		{"numbered list", "<ol><li>one</li><li>two</li></ol>", "1. one\n2. two"},
		{"steps", "<ol><li>\n<h3>One</h3><p>Text</p></li><li><h3>Two</h3></li></ol>", "### 1. One\n\nText\n\n### 2. Two"},
		{
			"fields", "<dl><div><dt><code>user</code> <span>object</span></dt><dd><p>The visitor.</p> <p>One of <code>a</code></p>" +
				"<dl><div><dt>id</dt><dd></dd></div></dl></dd></div><div><dt>next</dt><dd><p>Last.</p></dd></div></dl>",
			"- `user` object: The visitor. One of `a`\n  - id\n- next: Last.",
		},
		{
			"table", "<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><th>a|b</th><td><ul><li>x</li><li>y</li></ul></td></tr></tbody></table>",
			"| A | B |\n| --- | --- |\n| a\\|b | x<br>y |",
		},
		{"folded", "<details><summary><code>a.go</code> <span>Go</span></summary><p>Text</p></details>", "**`a.go` Go**\n\nText"},
		{
			"code with its name", `<div class="snippet-bar"><span>Go</span><button>Copy</button></div><pre><code class="language-go">` + "<i>if</i> a &lt; b {\n\tf()\n}</code></pre>",
			"**Go**\n\n```go\nif a < b {\n\tf()\n}\n```",
		},
		{"code with backquotes", "<pre><code>a\n````\nb</code></pre><p><code>`x</code></p>", "`````\na\n````\nb\n`````\n\n`` `x ``"},
		{"controls", "<fieldset><legend>Go</legend><input type=radio></fieldset><p>a</p>", "a"},
		{"characters of Markdown", `<p>*a* [b] &lt;c> \ &amp;amp; _d_ NAS_API_KEY</p>`, `\*a\* \[b\] \<c> \\ \&amp; \_d\_ NAS_API_KEY`},
		{"text like a block", "<p>1. a</p><p># b</p><p>- c</p><p>2.5 d</p>", "1\\. a\n\n\\# b\n\n\\- c\n\n2.5 d"},
	} {
		if got := convert(t, tt.html); got != tt.want+"\n" {
			t.Errorf("%s:\n%s\nwant:\n%s", tt.name, got, tt.want)
		}
	}
}

func TestUnknownElementIsAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken link")
	resolve := func(string) (string, error) { return "", broken }
	for page, want := range map[string]string{
		"<main><p><img></p></main>":             "<img>",
		"<main><ul><li><pre></pre></li></ul>":   "<pre>",
		"<main><p><a href=/x>x</a></p></main>":  broken.Error(),
		"<body><p>no page of the documentation": "no main",
	} {
		if _, err := markdown.Convert([]byte(page), resolve); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", page, err, want)
		}
	}
}
