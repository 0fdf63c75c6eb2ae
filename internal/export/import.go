package export

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// maxLine bounds a line: a message, or a file that was sent.
const maxLine = 512 << 20

// Imported says what an import did.
type Imported struct {
	Conversations int64 // stored
	Skipped       int64 // were here already
	Rows          int64
	Memories      int64 // stored, of people of whom nothing was remembered here

	// What was open in the file, and is ended.
	Entries    int64 // messages that waited or were being answered
	Deliveries int64 // answers on their way
}

// block is a conversation in the file.
type block struct {
	id, platform, platformID string

	offset int64 // of its first line
	line   int   // number of that line
}

// Import stores an export. First the whole file is examined: a torn, changed or
// newer one is fault.Invalid and nothing is stored. Then each conversation is
// stored in a transaction of its own; an error names the line, and its
// conversation is not stored. A conversation that is here already is skipped, so
// an import can be repeated. What was open is settled: nothing is sent or
// answered again.
func Import(ctx context.Context, s *store.Store, in io.ReadSeeker) (Imported, error) {
	var done Imported
	shared, blocks, err := examine(in)
	if err != nil {
		return done, err
	}
	if shared.schema > store.LatestSchema() {
		return done, fault.Newf(fault.Invalid,
			"The export has schema version %d, but this version supports only %d: import it with that version or newer.", shared.schema, store.LatestSchema())
	}
	codebases, memories, err := importShared(ctx, s, in, shared)
	if err != nil {
		return done, err
	}
	done.Memories = memories
	for _, b := range blocks {
		next := done
		err := s.InTx(ctx, func(tx *store.Tx) error {
			next = done
			return importBlock(ctx, tx, in, b, codebases, &next)
		})
		if err != nil {
			return done, err
		}
		done = next
	}
	return done, nil
}

// importShared stores the rows before the conversations, in one transaction. It
// returns which id here the codebases of the export have.
func importShared(ctx context.Context, s *store.Store, in io.ReadSeeker, shared sharedPart) (codebases map[string]string, memories int64, err error) {
	people := make(map[string]bool) // whose memories are stored
	err = s.InTx(ctx, func(tx *store.Tx) error {
		codebases, memories = make(map[string]string), 0
		clear(people)
		err := eachLine(in, shared.offset, shared.line, func(number int, l line, _ []byte) (bool, error) {
			if l.Row == nil || l.Type == typeConversation {
				return false, nil // of version 1 without an end
			}
			var person string
			_ = json.Unmarshal(l.Row["user_id"], &person) // ImportShared says what is wrong with it
			ofPerson := l.Row["seq"] != nil && l.Type != typeMemoryPerson
			if (ofPerson || l.Type == typeMemoryAccount) && !people[person] {
				return true, nil
			}
			renameCodebase(l.Row, codebases)
			stored, err := tx.Portable().ImportShared(ctx, l.Type, l.Row, codebases)
			switch {
			case l.Type == typeMemoryPerson:
				people[person] = stored
			case ofPerson && stored:
				memories++
			}
			return true, inLine(number, err)
		})
		if err != nil || memories == 0 {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: "memory.import", Detail: fmt.Sprintf(`{"memories":%d}`, memories)})
	})
	return codebases, memories, err
}

// renameCodebase gives a row the id that its codebase has here.
func renameCodebase(row map[string]json.RawMessage, codebases map[string]string) {
	var there string
	if raw, ok := row["codebase_id"]; ok && json.Unmarshal(raw, &there) == nil && codebases[there] != "" {
		row["codebase_id"] = json.RawMessage(`"` + codebases[there] + `"`)
	}
}

func importBlock(ctx context.Context, tx *store.Tx, in io.ReadSeeker, b block, codebases map[string]string, done *Imported) error {
	here, err := tx.Portable().HasConversation(ctx, b.id, b.platform, b.platformID)
	if here {
		done.Skipped++
	}
	if err != nil || here {
		return inLine(b.line, err)
	}
	done.Conversations++
	if err := tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: "conversation.import", ConversationID: b.id, Target: b.platform + "/" + b.platformID}); err != nil {
		return err
	}
	return eachLine(in, b.offset, b.line, func(number int, l line, _ []byte) (bool, error) {
		if l.Type == typeConversationEnd {
			return false, nil
		}
		renameCodebase(l.Row, codebases)
		done.Rows++
		was := string(l.Row["state"])
		err := tx.Portable().ImportRow(ctx, l.Type, l.Row)
		if string(l.Row["state"]) != was && l.Type == typeEntry {
			done.Entries++
		} else if string(l.Row["state"]) != was {
			done.Deliveries++
		}
		return true, inLine(number, err)
	})
}

// inLine adds the number of the line to an error.
func inLine(number int, err error) error {
	if err == nil {
		return nil
	}
	return &fault.Error{Kind: fault.KindOf(err), Public: fmt.Sprintf("Line %d: %s", number, fault.Public(err)), Err: fmt.Errorf("line %d: %w", number, err)}
}

// sharedPart is where the rows before the conversations are.
type sharedPart struct {
	offset int64
	line   int
	schema int64
}

// examiner checks a file line by line.
type examiner struct {
	shared sharedPart
	blocks []block
	seen   map[string]int // conversations, with their lines

	version int
	open    bool // inside a conversation
	sharing bool // before the end of the shared part
	sum     hash.Hash
	counts  map[string]int64
	ended   bool
	begun   bool
}

// examine reads the whole file and returns where its parts are.
func examine(in io.ReadSeeker) (sharedPart, []block, error) {
	e := &examiner{seen: make(map[string]int), sum: sha256.New()}
	var offset int64
	err := eachLine(in, 0, 1, func(number int, l line, raw []byte) (bool, error) {
		err := e.take(number, offset, l, raw)
		offset += int64(len(raw))
		return err == nil, err
	})
	if err != nil {
		return e.shared, nil, err
	}
	if !e.ended {
		return e.shared, nil, fault.New(fault.Invalid, "The export is incomplete: its last line is missing. Nothing was imported; export again.")
	}
	return e.shared, e.blocks, nil
}

func (e *examiner) take(number int, offset int64, l line, raw []byte) error {
	refuse := func(text string, args ...any) error {
		return fault.Newf(fault.Invalid, "Line %d: %s Nothing was imported.", number, fmt.Sprintf(text, args...))
	}
	switch {
	case !e.begun:
		e.begun = true
		if l.Type != typeHeader || l.Format != format {
			return refuse("this is not an export of this program; `bot export` creates one.")
		}
		if l.Version > version {
			return refuse("the export was made by a newer version (format %d; this version supports %d).", l.Version, version)
		}
		e.version, e.sharing, e.counts = l.Version, l.Version > 1, make(map[string]int64)
		e.shared = sharedPart{offset: offset + int64(len(raw)), line: number + 1, schema: l.Schema}
	case e.ended:
		return refuse("there is data after the end.")
	case e.sharing && l.Type == typeSharedEnd:
		e.sharing = false
		return e.complete("the part before the conversations", l, refuse)
	case e.sharing && (l.Row == nil || l.Type == typeConversation):
		return refuse("the end of the part before the conversations is missing.")
	case l.Type == typeEnd:
		if e.open || l.Conversations == nil || *l.Conversations != int64(len(e.blocks)) {
			return refuse("conversations are missing: %d are here.", len(e.blocks))
		}
		e.ended = true
	case l.Type == typeConversationEnd:
		return e.endConversation(l, refuse)
	case l.Row == nil:
		return refuse("unknown type of line %q.", l.Type)
	case l.Type == typeConversation:
		if e.open {
			return refuse("the end of the previous conversation is missing.")
		}
		return e.beginConversation(number, offset, l, raw, refuse)
	default:
		if !e.open && (len(e.blocks) > 0 || e.version > 1 && !e.sharing) {
			return refuse("a row of type %s is outside of a conversation.", l.Type)
		}
		e.add(l.Type, raw)
	}
	return nil
}

func (e *examiner) add(kind string, raw []byte) {
	if e.open || e.sharing {
		_, _ = e.sum.Write(raw) // a hash takes everything
		e.counts[kind]++
	}
}

func (e *examiner) beginConversation(number int, offset int64, l line, raw []byte, refuse func(string, ...any) error) error {
	b := block{offset: offset, line: number}
	if errors.Join(json.Unmarshal(l.Row["id"], &b.id), json.Unmarshal(l.Row["platform_type"], &b.platform),
		json.Unmarshal(l.Row["platform_conversation_id"], &b.platformID)) != nil {
		return refuse("the conversation has no ID or no address.")
	}
	if first, twice := e.seen[b.id]; twice {
		return refuse("the conversation %s appears twice, first in line %d.", b.id, first)
	}
	e.seen[b.id] = number
	e.blocks = append(e.blocks, b)
	e.open, e.counts = true, make(map[string]int64)
	e.sum.Reset()
	e.add(l.Type, raw)
	return nil
}

func (e *examiner) endConversation(l line, refuse func(string, ...any) error) error {
	if !e.open || e.blocks[len(e.blocks)-1].id != l.ID {
		return refuse("the beginning of the conversation %s is missing.", l.ID)
	}
	e.open = false
	return e.complete("the conversation "+l.ID, l, refuse)
}

// complete checks the rows of a part against the line behind it.
func (e *examiner) complete(part string, l line, refuse func(string, ...any) error) error {
	kinds := make(map[string]int64)
	maps.Copy(kinds, l.Counts)
	maps.Copy(kinds, e.counts)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		switch have, want := e.counts[kind], l.Counts[kind]; {
		case have < want:
			return refuse("%s has %d of %d rows of type %s: some are missing.", part, have, want, kind)
		case have > want:
			return refuse("%s has %d rows of type %s where %d were written: some appear twice.", part, have, kind, want)
		}
	}
	if hex.EncodeToString(e.sum.Sum(nil)) != l.SHA256 {
		return refuse("the rows of %s were changed after the export.", part)
	}
	return nil
}

// eachLine calls visit for the lines from an offset on, the first with the given
// number, until it returns false.
func eachLine(in io.ReadSeeker, offset int64, number int, visit func(number int, l line, raw []byte) (more bool, err error)) error {
	if _, err := in.Seek(offset, io.SeekStart); err != nil {
		return fault.Wrap(err, fault.Unavailable, "read the export")
	}
	r := bufio.NewReaderSize(in, 64<<10)
	for ; ; number++ {
		raw, err := readLine(r)
		switch {
		case errors.Is(err, io.EOF) && len(raw) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return fault.Newf(fault.Invalid, "Line %d: the export is incomplete here. Nothing was imported; export again.", number)
		case err != nil:
			return inLine(number, err)
		}
		var l line
		d := json.NewDecoder(bytes.NewReader(raw))
		if err := d.Decode(&l); err != nil {
			return &fault.Error{Kind: fault.Invalid, Public: fmt.Sprintf("Line %d is not JSON. Nothing was imported.", number), Err: err}
		}
		more, err := visit(number, l, raw)
		if err != nil || !more {
			return err
		}
	}
}

// readLine returns a line with its end; io.EOF with what is there if the end is
// missing.
func readLine(r *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		part, err := r.ReadSlice('\n')
		whole = append(whole, part...)
		if len(whole) > maxLine {
			return nil, fault.New(fault.Invalid, "The line is too long.")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err != nil && !errors.Is(err, io.EOF) {
				err = fault.Wrap(err, fault.Unavailable, "read the export")
			}
			return whole, err
		}
	}
}
