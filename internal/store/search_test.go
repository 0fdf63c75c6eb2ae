//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/store"
)

// say stores a text of a role and returns its number.
func (b bundle) say(t *testing.T, session, run string, m ...messages.Message) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Messages().AppendMessages(ctx, session, run, m...)
		return err
	})
}

func textOf(role messages.Role, text string) messages.Message {
	return messages.Message{Role: role, Blocks: []messages.Block{messages.Text{Text: text}}}
}

func (b bundle) search(t *testing.T, f store.SearchFilter) (found []string, hits []store.Hit) {
	t.Helper()
	err := b.InRead(t.Context(), func(tx *store.Tx) error {
		var err error
		hits, err = tx.Search().Messages(t.Context(), f)
		return err
	})
	if err != nil {
		t.Fatalf("search %q: %v", f.Words, err)
	}
	for _, h := range hits {
		found = append(found, h.Content)
	}
	return found, hits
}

// eachIndex runs a test with the index of words as far as it may be on SQLite:
// without anything, with what was there when the test called half, and with all that
// was there when it called all.
func eachIndex(t *testing.T, test func(t *testing.T, b bundle, half, all func())) {
	t.Helper()
	for i, name := range []string{"nothing is indexed", "some is indexed", "all is indexed"} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b bundle) { //nolint:thelper // runs a test
				index := func(stage int) func() {
					return func() {
						if i < stage {
							return
						}
						if err := store.IndexMessages(t.Context(), b.Store); err != nil {
							t.Fatal(err)
						}
					}
				}
				test(t, b, index(1), index(2))
			})
		})
	}
}

func TestSearchFindsWhatPeopleAndAssistantsWrote(t *testing.T) { //nolint:tparallel // eachIndex runs them in parallel
	t.Parallel()
	eachIndex(t, func(t *testing.T, b bundle, half, all func()) {
		c := b.conversation(t, "one")
		s := b.session(t, c.ID)
		other := b.session(t, b.conversation(t, "two").ID)
		const path, quoted, cyrillic = "See internal/store/search.go:42, please", "She said “Hello-World”", "Привет, мир"
		const french, apart, plain = "Le café est fermé", "le re\u0301sume\u0301 du Cafe\u0301 a\u0300 Việt Nam", "the resume of a cafe"
		b.say(t, s.ID, "", textOf(messages.RoleUser, path), textOf(messages.RoleAssistant, french))
		half()
		b.say(t, other.ID, "", textOf(messages.RoleUser, apart), textOf(messages.RoleUser, plain))
		b.say(t, other.ID, "", textOf(messages.RoleUser, quoted), textOf(messages.RoleUser, cyrillic))
		const chinese, japanese, thai, burmese = "我不喜欢喝咖啡，但是用Docker部署Go语言很好", "毎朝コーヒーを飲みます。スーパーへ行く", "ฉันชอบดื่มกาแฟทุกเช้า", "ကျွန်တော်ကော်ဖီကြိုက်တယ်"
		b.say(t, s.ID, "", textOf(messages.RoleUser, chinese), textOf(messages.RoleUser, japanese), textOf(messages.RoleUser, thai), textOf(messages.RoleUser, burmese))
		b.say(t, s.ID, "", messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{
			messages.Thinking{Text: "secretthought"}, messages.ToolCall{ID: "1", Name: "shell", Arguments: `{"a":"toolword"}`},
		}}, messages.Message{Role: messages.RoleTool, Blocks: []messages.Block{messages.ToolResult{CallID: "1", Content: "toolword"}}})
		all()
		for words, want := range map[string][]string{
			"search":         {path},
			"SEARCH go":      {path},
			"internal/store": {path},
			"42":             {path},
			"sear":           nil,
			"sear*":          {path},
			"SEAR* 42":       {path},
			"internal/st*":   {path},
			"earch":          nil,
			"café":           {plain, apart, french},
			"cafe":           {plain, apart, french},
			"CAFE\u0301 est": {french},
			"caf\u00e8*":     {plain, apart, french},
			"résumé":         {plain, apart},
			"re\u0301sume":   {plain, apart},
			"RÉSUM*":         {plain, apart},
			"ferme":          {french},
			"viet":           {apart},
			"esume":          nil,
			"hello":          {quoted},
			"hello world":    {quoted},
			"Привет":         {cyrillic},
			"search hello":   nil,
			"咖啡":             {chinese},
			"喝咖啡":            {chinese},
			"咖啡喝":            nil,
			"喜咖":             nil,
			"咖":              {chinese},
			"啡":              {chinese},
			"茶":              nil,
			"咖啡*":            {chinese},
			"Go语言 咖啡":        {chinese},
			"docker":         {chinese},
			"部署go":           {chinese},
			"但是 dock*":       {chinese},
			"ocker":          nil,
			"咖啡 茶":           nil,
			"很好":             {chinese},
			"好":              {chinese},
			"コーヒー":           {japanese},
			"コーパー":           nil,
			"スーパーへ":          {japanese},
			"朝コーヒー 行く":       {japanese},
			"กาแฟ":           {thai},
			"แฟกา":           nil,
			"กาแฟทุกเช้า ฉัน":    {thai},
			"ကော်ဖီ":             {burmese},
			"s":                  nil,
			"s*":                 {quoted, path},
			"secretthought":      nil,
			"toolword":           nil,
			`"she" OR NOT (x:*)`: nil,
			"she & ! ' said":     {quoted},
		} {
			got, _ := b.search(t, store.SearchFilter{Words: words})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("search %q (-want +got):\n%s", words, diff)
			}
		}
		got, _ := b.search(t, store.SearchFilter{Words: "s*", ConversationID: c.ID})
		if diff := cmp.Diff([]string{path}, got); diff != "" {
			t.Errorf("in one conversation (-want +got):\n%s", diff)
		}
		for conversation, want := range map[string][]string{c.ID: {chinese}, other.ConversationID: nil} {
			got, _ := b.search(t, store.SearchFilter{Words: "喝咖啡 go", Within: []string{conversation}})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("without spaces in one conversation (-want +got):\n%s", diff)
			}
		}
		if diff := cmp.Diff([]string{s.ID}, findAll(t, b, store.SessionFilter{Limit: 5}, "喝咖啡 go")); diff != "" {
			t.Errorf("sessions without spaces (-want +got):\n%s", diff)
		}
		_, hits := b.search(t, store.SearchFilter{Words: "s*", Limit: 1})
		if got, _ := b.search(t, store.SearchFilter{Words: "s*", Before: hits[0].ID}); !cmp.Equal(got, []string{path}) {
			t.Errorf("next page = %q, want %q", got, path)
		}
		for _, empty := range []string{"", " . ", "🎉"} {
			err := b.InRead(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Search().Messages(t.Context(), store.SearchFilter{Words: empty})
				return err
			})
			wantKind(t, err, fault.Invalid)
		}
	})
}

// Letters without an accent to lose are found in their usual spelling, and what is composed
// in another way than it is looked for.
func TestSearchFindsLettersHoweverTheyAreWritten(t *testing.T) { //nolint:tparallel // eachIndex runs them in parallel
	t.Parallel()
	eachIndex(t, func(t *testing.T, b bundle, half, all func()) {
		s := b.session(t, b.conversation(t, "one").ID)
		const polish, nordic, turkish = "Zażółć gęślą jaźń w ŁODZI", "Smørrebrød på Ærø, Straße, œuvre, Þing, Đà Nẵng, o\u0338re", "ılık süt"
		b.say(t, s.ID, "", textOf(messages.RoleUser, polish), textOf(messages.RoleUser, nordic), textOf(messages.RoleUser, turkish))
		const edge, plural, greek, edges = "твой край", "твои края", "το καφέ", "краи\u0306 все\u0308" // as macOS writes names of files
		korean, kana := norm.NFD.String("새 한국어 파일"), norm.NFD.String("ガイドを読む")
		half()
		b.say(t, s.ID, "", textOf(messages.RoleUser, edge), textOf(messages.RoleUser, plural), textOf(messages.RoleUser, norm.NFD.String(greek)),
			textOf(messages.RoleUser, edges), textOf(messages.RoleUser, korean), textOf(messages.RoleUser, kana))
		all()
		for words, want := range map[string][]string{
			"lodzi":           {polish},
			"łodz*":           {polish},
			"Zazolc gesla":    {polish},
			"smorrebrod":      {nordic},
			"SMØRREBRØD aero": {nordic},
			"aer*":            {nordic},
			"strasse OEUVRE":  {nordic},
			"straße thing da": {nordic},
			"STRAẞE":          {nordic},
			"ilik":            {turkish},
			"край":            {edges, edge},
			"кра\u0438\u0306": {edges, edge},
			"твой":            {edge},
			"кра*":            {edges, plural, edge},
			"край всё":        {edges},
			"καφέ":            {norm.NFD.String(greek)},
			"한국어":             {korean},
			"한국*":             {korean},
			"파일 한국어":          {korean},
			"ガイド":             {kana},
			"ガ":               {kana},
			"カイド":             nil,
		} {
			got, _ := b.search(t, store.SearchFilter{Words: words})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("search %q (-want +got):\n%s", words, diff)
			}
			if diff := cmp.Diff(want != nil, findAll(t, b, store.SessionFilter{Limit: 5}, words) != nil); diff != "" {
				t.Errorf("sessions with %q (-want +got):\n%s", words, diff)
			}
		}
		got, hits := b.search(t, store.SearchFilter{Words: "край", Limit: 1})
		if next, _ := b.search(t, store.SearchFilter{Words: "край", Limit: 1, Before: hits[0].ID}); got[0] != edges || !cmp.Equal(next, []string{edge}) {
			t.Errorf("pages = %q and %q", got, next)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for seq := range int64(9) {
				if err := tx.Messages().SetContent(ctx, s.ID, seq+1, "user", "other"); err != nil {
					return err
				}
			}
			return nil
		})
		if err := store.IndexMessages(t.Context(), b.Store); err != nil {
			t.Fatal(err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Search().CheckSearchIndex(ctx) })
	})
}

func TestPlaceIsWhereAWordIs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, words, from string }{
		{"İstanbul has the NEEDLE here", "needle", "NEEDLE here"},
		{"mon re\u0301sume\u0301 est là", "absent RÉSUMÉ", "re\u0301sume\u0301 est là"},
		{"naïve, a cafe", "café", "cafe"},
		{"\xff\xfe broken", "broken", "broken"},
		{"我不喜欢喝咖啡", "咖啡", "咖啡"},
		{"Große Straße", "strasse", "Straße"},
		{"в краи\u0306 пришла", "край", "краи\u0306 пришла"},
		{norm.NFD.String("새 한국어"), "한국어", norm.NFD.String("한국어")},
		{"nothing", "absent", "nothing"},
		{"", "\xff", ""},
	} {
		if got := tt.text[store.Place(tt.text, tt.words):]; got != tt.from {
			t.Errorf("%q is at %q of %q", tt.words, got, tt.text)
		}
	}
}

func TestSearchFollowsChangesOfMessages(t *testing.T) { //nolint:tparallel // eachIndex runs them in parallel
	t.Parallel()
	eachIndex(t, func(t *testing.T, b bundle, half, all func()) {
		s := b.session(t, b.conversation(t, "one").ID)
		b.say(t, s.ID, "", textOf(messages.RoleUser, "apple"))
		half()
		b.say(t, s.ID, "", textOf(messages.RoleUser, strings.Repeat("wörter ", 40_000)+"beyond"))
		all()
		if got, _ := b.search(t, store.SearchFilter{Words: "wörter"}); len(got) != 1 {
			t.Errorf("a long message was found %d times", len(got))
		}
		if got, _ := b.search(t, store.SearchFilter{Words: "beyond"}); len(got) != 0 {
			t.Error("what is beyond the bound was found")
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Messages().SetContent(ctx, s.ID, 1, "user", "pear")
		})
		if got, _ := b.search(t, store.SearchFilter{Words: "apple"}); len(got) != 0 {
			t.Errorf("the old text is found: %q", got)
		}
		if got, _ := b.search(t, store.SearchFilter{Words: "pear"}); len(got) != 1 {
			t.Errorf("the new text is not found: %q", got)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Messages().SetContent(ctx, s.ID, 1, "thinking", "pear")
		})
		if got, _ := b.search(t, store.SearchFilter{Words: "pear"}); len(got) != 0 {
			t.Errorf("thinking is found: %q", got)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Messages().SetContent(ctx, s.ID, 1, "user", "plum")
		})
		if got, _ := b.search(t, store.SearchFilter{Words: "plum"}); len(got) != 1 {
			t.Errorf("text again, and not found: %q", got)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Sessions().DeleteSession(ctx, s.ID) })
		if got, _ := b.search(t, store.SearchFilter{Words: "plum"}); len(got) != 0 {
			t.Errorf("a deleted message is found: %q", got)
		}
		all()
		if err := store.IndexMessages(t.Context(), b.Store); err != nil {
			t.Fatal(err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Search().CheckSearchIndex(ctx) })
	})
}

func TestListSessionsPagesWithoutGapsOrRepeats(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		var want []string
		c := b.conversation(t, "one")
		for i := range 7 {
			s := b.session(t, c.ID)
			b.say(t, s.ID, "", textOf(messages.RoleUser, fmt.Sprint("message ", i)), textOf(messages.RoleAssistant, "answer"))
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Sessions().DeactivateSession(ctx, s.ID, "test")
			})
			want = append([]string{s.ID}, want...)
		}
		b.session(t, b.conversation(t, "other").ID)
		var got []string
		for before := ""; ; {
			var rows []store.SessionRow
			if err := b.InRead(t.Context(), func(tx *store.Tx) (err error) {
				rows, err = tx.Lists().Sessions(t.Context(), store.SessionFilter{ConversationID: c.ID, Before: before, Limit: 3})
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if len(rows) == 0 {
				break
			}
			for _, r := range rows {
				got = append(got, r.ID)
				if r.Messages != 2 || r.ToolCalls != 0 || r.Key != key("one") {
					t.Errorf("row = %+v", r)
				}
			}
			before = rows[len(rows)-1].ID
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages (-want +got):\n%s", diff)
		}
		for id, kind := range map[string]fault.Kind{"nonsense": fault.Invalid, "0198c2d1-7a3b-4c4d-8e5f-0123456789ab": fault.NotFound} {
			err := b.InRead(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Lists().Sessions(t.Context(), store.SessionFilter{Before: id})
				return err
			})
			wantKind(t, err, kind)
		}
	})
}

// A page goes on where it would have if the session that its link names was deleted since.
func TestAPageGoesOnBehindADeletedSession(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		const all, gone = 6, 2
		var ids []string // the newest first
		for i := range all {
			at := int64(1_790_000_000_000 - i*1000)
			id := fmt.Sprintf("%08x-%04x-7000-8000-000000000000", at>>16, at&0xffff)
			s := b.session(t, b.conversation(t, fmt.Sprint(i)).ID)
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return store.Exec(ctx, tx, `UPDATE remote_agent_sessions SET id = $2, started_at = $3 WHERE id = $1`, s.ID, id, time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z"))
			})
			b.say(t, id, "", textOf(messages.RoleUser, "a word"))
			ids = append(ids, id)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Care().RemoveSession(ctx, ids[gone])
			return err
		})
		for name, f := range map[string]store.SessionFilter{
			"all": {}, "platform": {Platform: "test"}, "among some": {Sessions: ids}, "in capitals": {},
		} {
			f.Before = ids[gone]
			if name == "in capitals" {
				f.Before = strings.ToUpper(f.Before)
			}
			if diff := cmp.Diff(ids[gone+1:], listAll(t, b, f)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			f.Limit = 2
			if diff := cmp.Diff(ids[gone+1:], findAll(t, b, f, "word")); diff != "" {
				t.Errorf("%s, those with a word (-want +got):\n%s", name, diff)
			}
		}
	})
}

// A place has what is there and what was put aside there, and nothing of a place
// whose id begins or ends like its own.
func TestPlacesAreKeptApart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		for _, id := range []string{"42", "42~demo~0123456789ab", "42~openai~0123456789ab", "4", "421", "42/7", "42/7~demo~0123456789ab", "é", "é~demo~1"} {
			c := b.conversation(t, id)
			b.say(t, b.session(t, c.ID).ID, "", textOf(messages.RoleUser, "canary of "+id))
		}
		for place, want := range map[string][]string{
			"42":   {"42", "42~demo~0123456789ab", "42~openai~0123456789ab"},
			"4":    {"4"},
			"42/7": {"42/7", "42/7~demo~0123456789ab"},
			"é":    {"é", "é~demo~1"},
			"%":    {},
		} {
			err := b.InRead(t.Context(), func(tx *store.Tx) error {
				here, err := tx.Lists().ConversationsAt(t.Context(), key(place))
				if err != nil {
					return err
				}
				numbered, err := tx.Lists().SessionIDs(t.Context(), here)
				if err != nil {
					return err
				}
				rows, err := tx.Lists().Sessions(t.Context(), store.SessionFilter{Within: here})
				if err != nil {
					return err
				}
				hits, err := tx.Search().Messages(t.Context(), store.SearchFilter{Words: "canary", Within: here})
				if err != nil {
					return err
				}
				listed, found := make([]string, 0, len(rows)), make([]string, 0, len(hits))
				for i := range rows {
					r := rows[len(rows)-1-i]
					listed = append(listed, r.Key.ID)
					if numbered[i] != r.ID {
						t.Errorf("%s: session %d has another number", place, i+1)
					}
				}
				for i := range hits {
					found = append(found, strings.TrimPrefix(hits[len(hits)-1-i].Content, "canary of "))
				}
				for how, got := range map[string][]string{"listed": listed, "found": found} {
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s at %q (-want +got):\n%s", how, place, diff)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}
