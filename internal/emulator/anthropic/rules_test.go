package anthropic_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"remote-agent/internal/emulator/anthropic"
)

// TestRules sends requests that the API refuses, each for one reason, and their
// neighbors that it takes.
func TestRules(t *testing.T) {
	t.Parallel()
	s := setup(t, anthropic.Options{})
	const (
		u     = `{"role":"user","content":"x"}`
		call  = `{"type":"tool_use","id":"t1","name":"f","input":{}}`
		call2 = `{"type":"tool_use","id":"t2","name":"f","input":{}}`
		ok    = `{"type":"tool_result","tool_use_id":"t1","content":"r"}`
		ok2   = `{"type":"tool_result","tool_use_id":"t2","content":"r"}`
		said  = `{"type":"text","text":"s"}`
	)
	asst := func(blocks ...string) string {
		return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
	}
	user := func(blocks ...string) string { return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}` }
	array := func(messages ...string) string {
		return `"model":"m","max_tokens":2048,"messages":[` + strings.Join(messages, ",") + `]`
	}
	tool := func(extra string) string { return `{"name":"f","input_schema":{"type":"object"}` + extra + `}` }
	mark := `,"cache_control":{"type":"ephemeral"}`
	marked := `{"type":"text","text":"x"` + mark + `}`
	picture := func(kind, data string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"` + kind + `","data":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `"}}`
	}
	shows := func(rest string) string { return `{"type":"tool_result","tool_use_id":"t1",` + rest + `}` }
	tests := map[string]struct{ body, want string }{
		"plain":               {array(u), ""},
		"blocks":              {array(user(said)), ""},
		"a call":              {array(u, asst(said, call), user(ok, said)), ""},
		"two calls":           {array(u, asst(call, call2), user(ok2, ok)), ""},
		"results in two rows": {array(u, asst(call, call2), user(ok), user(ok2, said)), ""},
		"two of one role":     {array(u, u, asst(said), asst(call), user(ok)), ""},
		"image result":        {array(u, asst(call), user(shows(`"content":[{"type":"text","text":"x"},`+picture("image/png", "\x89PNG")+`]`))), ""},
		"image behind result": {array(u, asst(call), user(shows(`"is_error":true,"content":"x"`), picture("image/png", "\x89PNG"))), ""},
		"no content result":   {array(u, asst(call), user(`{"type":"tool_result","tool_use_id":"t1"}`)), ""},
		"tools":               {array(u) + `,"tools":[` + tool(mark) + `],"tool_choice":{"type":"auto"}`, ""},
		"provider's tool":     {array(u) + `,"tools":[{"type":"web_search_20250305","name":"web_search"}]`, ""},
		"four marks":          {array(user(marked, marked, marked, marked)), ""},
		"adaptive":            {array(u) + `,"thinking":{"type":"adaptive"}`, ""},
		"effort":              {array(u) + `,"output_config":{"effort":"xhigh"}`, ""},

		"unknown effort":     {array(u) + `,"output_config":{"effort":"much"}`, "output_config.effort"},
		"not JSON":           {`"model":`, "not valid JSON"},
		"unknown field":      {array(u) + `,"n":1`, "n: Extra inputs"},
		"no model":           {`"max_tokens":1,"messages":[` + u + `]`, "model: Field required"},
		"no max_tokens":      {`"model":"m","messages":[` + u + `]`, "max_tokens: Field required"},
		"max_tokens":         {`"model":"m","max_tokens":0,"messages":[` + u + `]`, "max_tokens"},
		"no messages":        {`"model":"m","max_tokens":1,"messages":[]`, "at least one message"},
		"temperature":        {array(u) + `,"temperature":1.5`, "temperature"},
		"assistant first":    {array(asst(said), u), "first message"},
		"role":               {array(`{"role":"tool","content":"x"}`), "messages.0.role"},
		"later role":         {array(u, `{"role":"tool","content":"x"}`), "messages.1.role"},
		"system role":        {array(u, `{"role":"system","content":"x"}`), "top-level `system`"},
		"empty content":      {array(`{"role":"user","content":""}`), "non-empty content"},
		"empty list":         {array(`{"role":"user","content":[]}`), "non-empty content"},
		"empty middle":       {array(u, `{"role":"assistant","content":""}`, u), "non-empty content"},
		"content type":       {array(`{"role":"user","content":7}`), "content"},
		"empty text":         {array(user(`{"type":"text","text":""}`)), "must be non-empty"},
		"blank text":         {array(user(`{"type":"text","text":" \n"}`)), "non-whitespace"},
		"empty system":       {array(u) + `,"system":[{"type":"text","text":""}]`, "system: text content blocks must be non-empty"},
		"unknown block":      {array(user(`{"type":"poem"}`)), "'poem'"},
		"call by user":       {array(user(call)), "'tool_use'"},
		"result by model":    {array(u, asst(ok), u), "can only be in `user` messages"},
		"image by model":     {array(u, asst(`{"type":"image"}`), u), "'image'"},
		"no result":          {array(u, asst(call), u), "without `tool_result` blocks immediately after: t1"},
		"no next message":    {array(u, asst(call)), "without `tool_result`"},
		"one of two":         {array(u, asst(call, call2), user(ok)), "immediately after: t2"},
		"text before result": {array(u, asst(call), user(said, ok)), "without `tool_result`"},
		"text after call":    {array(u, asst(call, said), user(ok)), "cannot follow"},
		"orphan result":      {array(user(ok)), "unexpected `tool_use_id`"},
		"late result":        {array(u, asst(call), user(ok), asst(said), user(ok)), "unexpected `tool_use_id`"},
		"twice":              {array(u, asst(call), user(ok, ok)), "single result"},
		"ids again":          {array(u, asst(call), user(ok), asst(call), user(ok)), "must be unique"},
		"id":                 {array(u, asst(`{"type":"tool_use","id":"a:b","name":"f","input":{}}`)), "tool_use.id"},
		"name":               {array(u, asst(`{"type":"tool_use","id":"a","name":"f.g","input":{}}`)), "tool_use.name"},
		"input":              {array(u, asst(`{"type":"tool_use","id":"a","name":"f","input":"{}"}`)), "valid dictionary"},
		"no input":           {array(u, asst(`{"type":"tool_use","id":"a","name":"f"}`)), "tool_use.input"},
		"empty result text":  {array(u, asst(call), user(`{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":""}]}`)), "must be non-empty"},
		"empty error":        {array(u, asst(call), user(`{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":""}`)), "cannot be empty if `is_error`"},
		"unknown image":      {array(u, asst(call), user(shows(`"content":[`+picture("image/bmp", "BM")+`]`))), "media_type"},
		"no image":           {array(u, asst(call), user(shows(`"content":[`+picture("image/png", "BM")+`]`))), "does not appear to be a valid image/png"},
		"image of an error":  {array(u, asst(call), user(shows(`"is_error":true,"content":[{"type":"text","text":"x"},`+picture("image/png", "\x89PNG")+`]`))), "all content must be type `text` if `is_error` is true"},
		"image, then result": {array(u, asst(call), user(picture("image/png", "\x89PNG"), ok)), "without `tool_result`"},
		"assistant last":     {array(u, asst(said)), "prefill"},
		"unsigned thinking":  {array(u, asst(`{"type":"thinking","thinking":"x","signature":""}`, said), u), "Invalid `signature`"},
		"no signature":       {array(u, asst(`{"type":"thinking","thinking":"x"}`, said), u), "signature: Field required"},
		"thinking by user":   {array(user(`{"type":"thinking","thinking":"x","signature":"s"}`)), "'thinking'"},
		"five marks":         {array(user(marked, marked, marked, marked, marked)), "maximum of 4"},
		"mark type":          {array(user(`{"type":"text","text":"x","cache_control":{"type":"eternal"}}`)), "ephemeral"},
		"mark order":         {array(user(marked, `{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}`)), "ttl='1h'"},
		"mark on thinking":   {array(u, asst(`{"type":"thinking","thinking":"x","signature":"s"`+mark+`}`), u), "cache_control"},
		"tool name":          {array(u) + `,"tools":[{"name":"a b","input_schema":{"type":"object"}}]`, "tools.0.name"},
		"tool twice":         {array(u) + `,"tools":[` + tool("") + `,` + tool("") + `]`, "unique"},
		"no schema":          {array(u) + `,"tools":[{"name":"f"}]`, "input_schema: Field required"},
		"schema type":        {array(u) + `,"tools":[{"name":"f","input_schema":{"type":"string"}}]`, "'object'"},
		"choice, no tools":   {array(u) + `,"tool_choice":{"type":"auto"}`, "while providing tools"},
		"choice unknown":     {array(u) + `,"tools":[` + tool("") + `],"tool_choice":{"type":"tool","name":"g"}`, "not found"},
		"budget too small":   {array(u) + `,"thinking":{"type":"enabled","budget_tokens":1000}`, "1024"},
		"budget too large":   {array(u) + `,"thinking":{"type":"enabled","budget_tokens":2048}`, "must be greater"},
		"adaptive budget":    {array(u) + `,"thinking":{"type":"adaptive","budget_tokens":1024}`, "Extra inputs"},
		"thinking and heat":  {array(u) + `,"temperature":0,"thinking":{"type":"adaptive"}`, "only be set to 1"},
		"thinking and force": {array(u) + `,"tools":[` + tool("") + `],"tool_choice":{"type":"any"},"thinking":{"type":"adaptive"}`, "forces tool use"},
	}
	for name, tt := range tests {
		got := post(t, s, "{"+tt.body+"}")
		if (got.status == 200) != (tt.want == "") || !strings.Contains(strings.ReplaceAll(got.body, `\"`, `"`), tt.want) {
			t.Errorf("%s: %d %s, want %q", name, got.status, got.body, tt.want)
		}
	}
	if st := s.Stats(); st.Refused == 0 || len(s.Refusals()) != st.Refused {
		t.Errorf("stats %+v, %d refusals", st, len(s.Refusals()))
	}
}
