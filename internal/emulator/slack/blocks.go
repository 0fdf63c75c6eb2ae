package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Published limits of what a message may hold, in characters unless said
// otherwise.
const (
	maxPostText     = 40_000 // longer texts are cut
	maxUpdateText   = 4_000
	maxMarkdown     = 12_000 // all markdown of a message or a stream together
	maxMessageText  = 13_200 // observed ceiling of all blocks together
	maxBlocks       = 50
	maxViewBlocks   = 100
	maxSectionText  = 3_000
	maxFieldText    = 2_000
	maxHeaderText   = 150
	maxButtonText   = 75
	maxButtonValue  = 2_000
	maxID           = 255
	maxAttachments  = 100
	maxMetadata     = 8_000
	maxViewTitle    = 24
	maxViewMetadata = 3_000
	maxViewBytes    = 250_000
)

// block is what the emulator reads of a block, whatever its type.
type block struct {
	Type      string              `json:"type"`
	BlockID   string              `json:"block_id"`
	Text      json.RawMessage     `json:"text"`
	Fields    []textObject        `json:"fields"`
	Elements  []json.RawMessage   `json:"elements"`
	Accessory json.RawMessage     `json:"accessory"`
	Element   json.RawMessage     `json:"element"`
	Label     *textObject         `json:"label"`
	ImageURL  string              `json:"image_url"`
	SlackFile json.RawMessage     `json:"slack_file"`
	AltText   *string             `json:"alt_text"`
	Title     json.RawMessage     `json:"title"`
	Tasks     []block             `json:"tasks"`
	TaskID    string              `json:"task_id"`
	Status    string              `json:"status"`
	Details   json.RawMessage     `json:"details"`
	Output    json.RawMessage     `json:"output"`
	Rows      [][]json.RawMessage `json:"rows"`
}

type textObject struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// element is what the emulator reads of an element.
type element struct {
	Type         string            `json:"type"`
	ActionID     string            `json:"action_id"`
	Text         json.RawMessage   `json:"text"`
	Value        string            `json:"value"`
	URL          string            `json:"url"`
	Style        string            `json:"style"`
	InitialValue string            `json:"initial_value"`
	MaxLength    int               `json:"max_length"`
	AltText      *string           `json:"alt_text"`
	Elements     []json.RawMessage `json:"elements"`
	UserID       string            `json:"user_id"`
	Name         string            `json:"name"`
	Unicode      string            `json:"unicode"`
}

func (b block) text() textObject {
	var t textObject
	_ = json.Unmarshal(b.Text, &t)
	return t
}

// surface is where blocks are shown.
type surface int

const (
	inMessage surface = iota
	inStream
	inModal
)

// checker collects what is wrong with blocks.
type checker struct {
	where    surface
	problems []string
	ids      map[string]bool
	actions  map[string]bool // of one block
	markdown int
	total    int
}

func (c *checker) fail(pointer, format string, args ...any) {
	c.problems = append(c.problems, "[ERROR] "+fmt.Sprintf(format, args...)+" [json-pointer:"+pointer+"]")
}

// checkBlocks reads blocks and refuses them as Slack does.
func checkBlocks(raw string, where surface) ([]block, *apiError) {
	if strings.TrimSpace(raw) == "" {
		return nil, nil
	}
	var blocks []block
	if json.Unmarshal([]byte(raw), &blocks) != nil {
		var any []json.RawMessage
		if json.Unmarshal([]byte(raw), &any) == nil {
			return nil, refuse("invalid_blocks", "[ERROR] a block is not of the form of its type [json-pointer:/blocks]")
		}
		return nil, refuse("invalid_blocks_format")
	}
	c := &checker{where: where, ids: map[string]bool{}}
	limit, code := maxBlocks, "invalid_blocks"
	if where == inModal {
		limit, code = maxViewBlocks, "invalid_arguments"
	}
	if len(blocks) > limit {
		if where == inStream {
			return nil, refuse("msg_blocks_too_many")
		}
		c.fail("/blocks", "no more than %d items allowed", limit)
	}
	for i, b := range blocks {
		c.block(fmt.Sprintf("/blocks/%d", i), b)
	}
	if len(c.problems) > 0 {
		return nil, refuse(code, c.problems...)
	}
	if c.markdown > maxMarkdown || c.total > maxMessageText && where == inMessage {
		return nil, refuse("msg_blocks_too_long")
	}
	return blocks, nil
}

func (c *checker) block(at string, b block) {
	if utf8.RuneCountInString(b.BlockID) > maxID {
		c.fail(at+"/block_id", "must be less than 256 characters")
	}
	if b.BlockID != "" && c.ids[b.BlockID] {
		c.fail(at+"/block_id", "`block_id` %s already exists", b.BlockID)
	}
	c.ids[b.BlockID] = true
	c.actions = map[string]bool{}
	switch b.Type {
	case "section":
		c.section(at, b)
	case "header":
		c.length(at+"/text", b.text(), maxHeaderText, "plain_text")
	case "markdown":
		c.markdownText(at, b)
	case "context":
		c.elements(at, b, 10, "mrkdwn", "plain_text", "image")
	case "actions":
		c.elements(at, b, 25)
	case "context_actions":
		c.elements(at, b, 5, "feedback_buttons", "icon_button")
	case "divider":
	case "image":
		if b.ImageURL == "" && b.SlackFile == nil || b.AltText == nil {
			c.fail(at, "missing required field: image_url, slack_file or alt_text")
		}
	case "input":
		c.input(at, b)
	case "rich_text", "table", "video", "file":
		c.total += utf8.RuneCountInString(plainBlock(b))
	case "plan", "task_card":
		c.tasks(at, b)
	case "alert", "card", "carousel", "container", "layout", "data_table", "data_visualization":
		if c.where != inStream {
			c.fail(at+"/type", "unsupported type: %s", b.Type)
		}
	default:
		c.fail(at+"/type", "unsupported type: %s", b.Type)
	}
}

// length checks a text object.
func (c *checker) length(at string, t textObject, limit int, types ...string) {
	n := utf8.RuneCountInString(t.Text)
	c.total += n
	switch {
	case !slices.Contains(types, t.Type):
		c.fail(at+"/type", "must be one of %s", strings.Join(types, ", "))
	case n < 1:
		c.fail(at+"/text", "must be more than 0 characters")
	case n > limit:
		c.fail(at+"/text", "must be less than %d characters", limit+1)
	}
}

func (c *checker) section(at string, b block) {
	if b.Text == nil && len(b.Fields) == 0 {
		c.fail(at, "missing required field: text")
	}
	if b.Text != nil {
		c.length(at+"/text", b.text(), maxSectionText, "mrkdwn", "plain_text")
	}
	if len(b.Fields) > 10 {
		c.fail(at+"/fields", "no more than 10 items allowed")
	}
	for i, f := range b.Fields {
		c.length(fmt.Sprintf("%s/fields/%d", at, i), f, maxFieldText, "mrkdwn", "plain_text")
	}
	if b.Accessory != nil {
		c.element(at+"/accessory", b.Accessory)
	}
}

func (c *checker) markdownText(at string, b block) {
	var text string
	if json.Unmarshal(b.Text, &text) != nil || text == "" {
		c.fail(at+"/text", "must be a string of more than 0 characters")
		return
	}
	n := utf8.RuneCountInString(text)
	c.markdown += n
	c.total += n
	if c.where == inModal {
		c.fail(at+"/type", "unsupported type: markdown")
	}
}

func (c *checker) elements(at string, b block, limit int, types ...string) {
	if len(b.Elements) < 1 || len(b.Elements) > limit {
		c.fail(at+"/elements", "must have 1 to %d items", limit)
	}
	for i, raw := range b.Elements {
		here := fmt.Sprintf("%s/elements/%d", at, i)
		if len(types) == 0 {
			c.element(here, raw)
			continue
		}
		var t textObject
		_ = json.Unmarshal(raw, &t)
		c.total += utf8.RuneCountInString(t.Text)
		if !slices.Contains(types, t.Type) {
			c.fail(here+"/type", "unsupported type: %s", t.Type)
		}
	}
}

// element checks an interactive element.
func (c *checker) element(at string, raw json.RawMessage) {
	var e element
	if json.Unmarshal(raw, &e) != nil || e.Type == "" {
		c.fail(at, "missing required field: type")
		return
	}
	if utf8.RuneCountInString(e.ActionID) > maxID {
		c.fail(at+"/action_id", "must be less than 256 characters")
	}
	if e.ActionID != "" && c.actions[e.ActionID] {
		c.fail(at+"/action_id", "`action_id` %s already exists", e.ActionID)
	}
	c.actions[e.ActionID] = true
	switch e.Type {
	case "button":
		var t textObject
		_ = json.Unmarshal(e.Text, &t)
		c.length(at+"/text", t, maxButtonText, "plain_text")
		if utf8.RuneCountInString(e.Value) > maxButtonValue {
			c.fail(at+"/value", "must be less than 2001 characters")
		}
		if e.Style != "" && e.Style != "primary" && e.Style != "danger" {
			c.fail(at+"/style", "must be a valid enum value")
		}
	case "plain_text_input":
		if utf8.RuneCountInString(e.InitialValue) > maxSectionText || e.MaxLength > maxSectionText {
			c.fail(at+"/initial_value", "must be less than 3001 characters")
		}
		if e.MaxLength > 0 && utf8.RuneCountInString(e.InitialValue) > e.MaxLength {
			c.fail(at+"/initial_value", "must be less than `max_length`")
		}
	case "image":
		if e.AltText == nil {
			c.fail(at+"/alt_text", "missing required field: alt_text")
		}
	case "static_select", "overflow", "checkboxes", "radio_buttons", "users_select", "conversations_select",
		"channels_select", "external_select", "multi_static_select", "multi_users_select", "datepicker", "timepicker",
		"datetimepicker", "number_input", "email_text_input", "url_text_input", "rich_text_input", "file_input",
		"workflow_button", "feedback_buttons", "icon_button":
	default:
		c.fail(at+"/type", "unsupported type: %s", e.Type)
	}
}

func (c *checker) input(at string, b block) {
	if b.Label == nil {
		c.fail(at+"/label", "missing required field: label")
	} else {
		c.length(at+"/label", *b.Label, 2_000, "plain_text")
	}
	if b.Element == nil {
		c.fail(at+"/element", "missing required field: element")
		return
	}
	c.element(at+"/element", b.Element)
}

func (c *checker) tasks(at string, b block) {
	if b.Type == "plan" {
		if len(b.Title) == 0 {
			c.fail(at+"/title", "missing required field: title")
		}
		for i, t := range b.Tasks {
			t.Type = "task_card"
			c.tasks(fmt.Sprintf("%s/tasks/%d", at, i), t)
		}
		return
	}
	if b.TaskID == "" || len(b.Title) == 0 {
		c.fail(at, "missing required field: task_id or title")
	}
	if !slices.Contains([]string{"", "pending", "in_progress", "complete", "error"}, b.Status) {
		c.fail(at+"/status", "must be a valid enum value")
	}
	c.total += utf8.RuneCountInString(plainBlock(b))
}

// checkMetadata reads the metadata of a message. Given and empty clears it.
func checkMetadata(p params) (raw json.RawMessage, given bool, refused *apiError) {
	text := strings.TrimSpace(p.get("metadata"))
	if text == "" {
		return nil, false, nil
	}
	if len(text) > maxMetadata {
		return nil, true, refuse("metadata_too_large")
	}
	var meta map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &meta) != nil {
		return nil, true, refuse("invalid_metadata_format")
	}
	if len(meta) == 0 {
		return nil, true, nil
	}
	var kind string
	var payload map[string]any
	if json.Unmarshal(meta["event_type"], &kind) != nil || kind == "" || json.Unmarshal(meta["event_payload"], &payload) != nil || payload == nil {
		return nil, true, refuse("invalid_metadata_schema")
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, []byte(text))
	return compact.Bytes(), true, nil
}
