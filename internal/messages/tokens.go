package messages

const (
	// bytesPerToken is below the four or more bytes that a token of English
	// prose has, about that of source code, and that of one Chinese, Japanese or
	// Korean character.
	bytesPerToken = 3

	messageTokens = 4  // role and separators of a message
	blockTokens   = 8  // ids, names and brackets of a call, a result or a file
	mediaTokens   = 16 // the line that describes an attachment

	pixelsPerToken = 750  // of a picture, as Anthropic counts; others count about as many or fewer
	pageTokens     = 2000 // of a document: its text and a picture of it
	bytesPerPage   = 50_000
)

// EstimateTokens returns about how many tokens m costs a model. It errs on the
// high side for prose and code, and can be too low for random text (base64,
// hashes), so a caller still handles a provider's overflow error. It looks at
// lengths only: its cost does not depend on how long the texts are.
func EstimateTokens(m Message) int {
	tokens := messageTokens
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case Text:
			tokens += EstimateText(len(b.Text))
		case ToolCall:
			tokens += blockTokens + EstimateText(len(b.ID)+len(b.Name)+len(b.Arguments))
		case ToolResult:
			tokens += blockTokens + EstimateText(len(b.CallID)+len(b.Name)+len(b.Content))
		case Thinking:
			tokens += blockTokens + EstimateText(len(b.Text)+len(b.Signature))
		case Attachment:
			tokens += mediaTokens + EstimateText(len(b.Name)+len(b.MediaType)+len(b.Text)+len(b.Note)) + fileTokens(b)
		}
	}
	return tokens
}

// fileTokens is what the content of a file costs that is shown to a model.
func fileTokens(a Attachment) int {
	switch {
	case a.File == "":
		return 0
	case a.Width > 0:
		return (a.Width*a.Height + pixelsPerToken - 1) / pixelsPerToken
	case a.Pages > 0:
		return a.Pages * pageTokens
	}
	return (int(a.Size)/bytesPerPage + 1) * pageTokens
}

// EstimateAll returns the sum of EstimateTokens over msgs.
func EstimateAll(msgs []Message) int {
	total := 0
	for _, m := range msgs {
		total += EstimateTokens(m)
	}
	return total
}

// EstimateText returns about how many tokens a text of so many bytes costs a model, as
// EstimateTokens counts.
func EstimateText(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }
