package slack

import (
	"strings"

	"github.com/slack-go/slack"

	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

const (
	// maxText is what one message may hold: the markdown blocks of a message
	// take 12,000 characters together, and a whole message was seen refused
	// above 13,200, so there has to be room for maxFallback (contract B4.1).
	maxText = 11_800

	// maxPlain is the longest text that chat.update takes.
	maxPlain = 4000

	// maxFallback is how many bytes of a text are repeated for notifications and for
	// clients that show no blocks: within maxPlain also where each is escaped.
	maxFallback = 780

	// maxSection is how many characters a section block takes.
	maxSection = 3000

	// maxButtons and maxLabel are limits of an actions block and a button.
	maxButtons = 25
	maxLabel   = 75
)

// gap is put into what would notify somebody. It has no width.
const gap = "\u200b"

var (
	// control sequences: <@U…>, <#C…>, <!channel>, <!subteam^…>, <!date^…>.
	pings = pattern.Lazy(`(?i)<([@#][a-z0-9]|!(?:channel|here|everyone|group|subteam|date)\b)`)

	// and their names without brackets, where they do not follow a word.
	calls = pattern.Lazy(`(?i)(^|[^a-z0-9_@/.` + gap + `-])@(channel|here|everyone|group)\b`)
)

// defused returns a text in which nothing notifies anybody. It changes only
// what looks like a mention, also within code: an entity would show there.
func defused(markdown string) string {
	if !strings.ContainsAny(markdown, "<@") {
		return markdown
	}
	markdown = pings.ReplaceAllString(markdown, "<"+gap+"$1")
	return calls.ReplaceAllString(markdown, "${1}@"+gap+"$2")
}

// measure returns the length of a text as Slack counts it, in UTF-16 units,
// which is at least the number of characters.
func measure(markdown string) int {
	return platform.UTF16Len(defused(markdown))
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escaped writes a text so that Slack's own markup takes it literally.
func escaped(text string) string { return escaper.Replace(defused(text)) }

// content is a message as Slack takes it.
type content struct {
	text   string // for notifications; the whole text if there are no blocks
	blocks []slack.Block
}

// render writes a CommonMark text with its buttons.
func render(markdown string, buttons []messages.Button) content {
	return withBlocks(markdown, buttons, slack.NewMarkdownBlock("", defused(markdown)))
}

// withBlocks is a text that is shown in blocks, with its buttons.
func withBlocks(markdown string, buttons []messages.Button, blocks ...slack.Block) content {
	if row := actions(buttons); row != nil {
		blocks = append(blocks, row)
	}
	return content{text: escaped(shorten(markdown, maxFallback)), blocks: blocks}
}

// plainer are the forms that are left when Slack refuses the blocks of a message, each
// for when it refuses the one before: sections, where there are buttons or the text is
// too long to stand alone, and the text alone.
func plainer(markdown string, buttons []messages.Button) []content {
	alone := content{text: escaped(markdown), blocks: []slack.Block{}}
	if len(buttons) == 0 && len(alone.text) <= maxPlain {
		return []content{alone}
	}
	var sections []slack.Block
	for _, part := range platform.Split(markdown, maxSection, func(s string) int { return platform.UTF16Len(escaped(s)) }) {
		sections = append(sections, slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, escaped(part), false, true), nil, nil))
	}
	return []content{withBlocks(markdown, buttons, sections...), alone}
}

var asker = pattern.Lazy(`^<@([UW][A-Z0-9]{1,30})> asked: `)

// renderOpening writes the root of a thread that a slash command asked for.
// Only the name of who asked stays a mention.
func renderOpening(text string) content {
	who := asker.FindString(text)
	return content{text: who + escaped(text[len(who):])}
}

func actions(buttons []messages.Button) *slack.ActionBlock {
	var elements []slack.BlockElement
	for _, b := range buttons[:min(len(buttons), maxButtons)] {
		label := slack.NewTextBlockObject(slack.PlainTextType, shorten(b.Label, maxLabel-4), false, false)
		e := slack.NewButtonBlockElement(b.ID, b.ID, label)
		if b.Style != messages.ButtonPlain {
			e = e.WithStyle(slack.Style(b.Style))
		}
		elements = append(elements, e)
	}
	if elements == nil {
		return nil
	}
	return slack.NewActionBlock("", elements...)
}
