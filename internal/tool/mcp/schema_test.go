package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestSchemasThatModelAPIsRefuse has what real servers describe their tools with: the APIs
// refuse a whole request for one of them.
func TestSchemasThatModelAPIsRefuse(t *testing.T) {
	t.Parallel()
	const text = `{"type":"string"}`
	tests := map[string]struct{ schema, want string }{
		"AlternativesAtTheTop": { // Notion
			`{"type":"object","anyOf":[
				{"type":"object","properties":{"name":{"type":"string"},"kind":{"const":"text"},"content":{"type":"string"}},"required":["content"]},
				{"$ref":"#/$defs/url"}],"$defs":{"url":{"oneOf":[{"properties":{"name":{"type":"string"},"kind":{"const":"url"},"url":{"type":"string"}}}]}}}`,
			`{"$defs":{"url":{"oneOf":[{"properties":{"kind":{"const":"url"},"name":` + text + `,"url":` + text + `}}]}},` +
				`"properties":{"content":` + text + `,"kind":{"anyOf":[{"const":"text"},{"const":"url"}]},"name":` + text + `,"url":` + text + `},"type":"object"}`,
		},
		"RulesAtTheTop": {
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"oneOf":[{"type":"string"},{"type":"null"}]}},"required":["a"],
				"oneOf":[{"required":["a"],"properties":{"a":{"const":1}}},{"required":["b"]},true],"allOf":[{"if":{},"then":{}}],"not":{"required":["c"]},"enum":[1]}`,
			`{"properties":{"a":` + text + `,"b":{"oneOf":[{"type":"string"},{"type":"null"}]}},"required":["a"],"type":"object"}`,
		},
		"ListOfAnything": {
			`{"type":"object","properties":{"a":{"type":"array"},"b":{"type":["array","null"]},"c":{"type":"array","items":{"type":"array"}}}}`,
			`{"properties":{"a":{"items":{},"type":"array"},"b":{"items":{},"type":["array","null"]},"c":{"items":{"items":{},"type":"array"},"type":"array"}},"type":"object"}`,
		},
		"NamesOfArguments": {
			`{"type":"object","properties":{"projects.any":{"type":"string"},"filter[id]":{"type":"string"},"$top":{"type":"string"},"_top":{"type":"string"},"` + strings.Repeat("x", 70) + `":{"type":"string"}},
				"required":["$top","projects.any"]}`,
			`{"properties":{"_top":` + text + `,"_top_81bf98e4":` + text + `,"filter_id_":` + text + `,"projects.any":` + text + `,` +
				`"` + strings.Repeat("x", 55) + `_c71bd109":` + text + `},"required":["_top_81bf98e4","projects.any"],"type":"object"}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := checkSchema(json.RawMessage(tt.schema))
			if err != nil || string(got) != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

func TestArgumentsGoOutUnderTheirOwnNames(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"$top":{"type":"integer"},"filter[id]":{"type":"string"},"plain":{"type":"object"}}}`
	opts := hostile(`{"tools":[{"name":"t","inputSchema":`+schema+`}]}`, func(out io.Writer, id json.RawMessage, _ string) {
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", id)
	})
	var sent strings.Builder
	start := opts.Start
	opts.Start = func(ctx context.Context, s Server) (*Process, error) {
		p, err := start(ctx, s)
		p.Stdin = recorded{p.Stdin, &sent}
		return p, err
	}
	tools, problems := connect(t, opts, Server{Name: "h", Command: []string{"x"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	args := `{"_top":12345678901234567890,"filter_id_":"a","plain":{"_top":1}}`
	if _, err := call(t, tools["mcp__h__t"], args); err != nil {
		t.Fatal(err)
	}
	want := `"arguments":{"$top":12345678901234567890,"filter[id]":"a","plain":{"_top":1}}`
	if got := sent.String(); !strings.Contains(got, want) {
		t.Errorf("sent %s, want %s", got, want)
	}
	e, err := tools["mcp__h__t"].Effect(t.Context(), json.RawMessage(args))
	if err != nil || !strings.Contains(e.Detail, `"filter[id]": "a"`) {
		t.Errorf("a person reads %q, %v", e.Detail, err)
	}
}

// recorded notes what is written.
type recorded struct {
	io.WriteCloser
	to *strings.Builder
}

func (r recorded) Write(p []byte) (int, error) {
	r.to.Write(p)
	return r.WriteCloser.Write(p)
}
