package anthropic

import "encoding/json"

// apiVersion is the version of the API that the types below are written for.
const apiVersion = "2023-06-01"

// messagesRequest is the body of POST /v1/messages.
type messagesRequest struct {
	Model        string          `json:"model"`
	MaxTokens    int             `json:"max_tokens"`
	Stream       bool            `json:"stream"`
	Metadata     *metadata       `json:"metadata,omitempty"`
	Thinking     *thinkingConfig `json:"thinking,omitempty"`
	OutputConfig *outputConfig   `json:"output_config,omitempty"`
	Tools        []tool          `json:"tools,omitempty"`
	System       []*textBlock    `json:"system,omitempty"`
	Messages     []message       `json:"messages"` // the last field; see body

	earlier []byte // the messages before Messages, encoded
	replays bool   // thinking of the model is sent back
}

// metadata tells conversations apart for the provider's abuse reports.
type metadata struct {
	UserID string `json:"user_id"`
}

// thinkingConfig is adaptive, or enabled with a budget.
type thinkingConfig struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens,omitempty"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	cacheable
}

// cacheable is what can end a prefix that the API caches.
type cacheable struct {
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

type cacheControl struct {
	Type string `json:"type"`
}

func (c *cacheable) mark() { c.CacheControl = &cacheControl{Type: "ephemeral"} }

// message is one of a request. Its content is blocks: pointers to those below,
// or a json.RawMessage that goes back as the API sent it.
type message struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type textBlock struct {
	Type string `json:"type"` // text
	Text string `json:"text"`
	cacheable
}

type fileBlock struct {
	Type   string     `json:"type"` // image or document
	Title  string     `json:"title,omitempty"`
	Source fileSource `json:"source"`
	cacheable
}

type fileSource struct {
	Type      string `json:"type"` // base64
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

type toolUseBlock struct {
	Type  string          `json:"type"` // tool_use
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	cacheable
}

type toolResultBlock struct {
	Type      string `json:"type"` // tool_result
	ToolUseID string `json:"tool_use_id"`
	IsError   bool   `json:"is_error,omitempty"`
	Content   []any  `json:"content"` // *textBlock, *fileBlock
	cacheable
}

type thinkingBlock struct {
	Type      string `json:"type"` // thinking
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type redactedBlock struct {
	Type string `json:"type"` // redacted_thinking
	Data string `json:"data"`
}

// streamEvent is an event of an answer. What it brings is read by its type, with
// read.
type streamEvent struct {
	Type         string          `json:"type"`
	Index        int64           `json:"index"`
	Message      json.RawMessage `json:"message"`
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        json.RawMessage `json:"delta"`
	Usage        json.RawMessage `json:"usage"`
}

// read returns what can be read of a part of an event: a field of another type
// than ours is as one that was left out. The API adds kinds of blocks and
// deltas, and other servers are careless with counts.
func read[T any](raw json.RawMessage) (v T) {
	_ = json.Unmarshal(raw, &v) // the event was read, so this is JSON or nothing
	return v
}

// startedMessage is what message_start says.
type startedMessage struct {
	ID    string          `json:"id"`
	Model string          `json:"model"`
	Usage json.RawMessage `json:"usage"`
}

// startedBlock is a block as content_block_start brings it.
type startedBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// blockDelta is what content_block_delta adds to a block.
type blockDelta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Thinking    string `json:"thinking"`
	Signature   string `json:"signature"`
	PartialJSON string `json:"partial_json"`
}

// messageDelta is how message_delta ends an answer.
type messageDelta struct {
	StopReason  stopReason      `json:"stop_reason"`
	StopDetails json.RawMessage `json:"stop_details"`
}

// stopDetails say why the model refused.
type stopDetails struct {
	Category    string `json:"category"`
	Explanation string `json:"explanation"`
}

// usage is what was used, in tokens. The three counts of input are disjoint; a
// count that was left out is nil.
type usage struct {
	Input   *int64 `json:"input_tokens"`
	Written *int64 `json:"cache_creation_input_tokens"`
	Read    *int64 `json:"cache_read_input_tokens"`
	Output  *int64 `json:"output_tokens"`
}

// stopReason says why an answer ended. Those that are not known end it, too.
type stopReason string

const (
	stopMaxTokens stopReason = "max_tokens"
	stopPauseTurn stopReason = "pause_turn"
	stopRefusal   stopReason = "refusal"
	stopOverflow  stopReason = "model_context_window_exceeded"
)
