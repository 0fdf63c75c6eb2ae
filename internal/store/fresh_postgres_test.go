package store_test

import (
	"bytes"
	"fmt"
	neturl "net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/store"
	"remote-agent/internal/store/cluster"
	"remote-agent/internal/store/storetest"
	"remote-agent/migrations"
)

// The text that a new PostgreSQL database is made of is what the migrations make, step by
// step, as pg_dump sees both.
func TestPostgresSchemaIsWhatTheMigrationsMake(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	if _, version := migrations.Schema(migrations.Postgres); version != store.LatestSchema() && !*writeSchema {
		t.Fatalf("migrations/schema/postgres.sql is of version %d, the migrations go to %d: run make generate where PostgreSQL is installed", version, store.LatestSchema())
	}
	open := func() (*store.Store, string) {
		t.Helper()
		url := storetest.PostgresURL(t)
		s, err := store.Open(ctx, store.Options{URL: url, Log: storetest.Log(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s, url
	}
	stepwise, stepwiseURL := open()
	if err := store.MigrateTo(ctx, stepwise, store.LatestSchema()); err != nil {
		t.Fatal(err)
	}
	made := dump(t, stepwiseURL)
	text := fmt.Sprintf("-- version %d\n%s\n", store.LatestSchema(), compose(made))
	if *writeSchema {
		if err := os.WriteFile("../../migrations/schema/postgres.sql", []byte(text), 0o644); err != nil { //nolint:gosec // a source file
			t.Fatal(err)
		}
		return
	}
	atOnce, atOnceURL := open()
	applied, err := atOnce.Migrate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(flat(made), flat(dump(t, atOnceURL))); diff != "" {
		t.Errorf("a new database differs from one that the migrations made; run make generate (-stepwise +new):\n%s", diff)
	}
	list, err := atOnce.MigrationStatus(ctx)
	if err != nil || len(list) != len(applied) {
		t.Errorf("%d migrations, %d applied, %v", len(list), len(applied), err)
	}
	for _, m := range list {
		if !m.Applied {
			t.Errorf("%s is not noted as applied", m.Name)
		}
	}
}

// section is what pg_dump says of an object.
type section struct{ Kind, Name, Text string }

var (
	sectionHead    = regexp.MustCompile(`(?m)^--\n-- (?:Data for )?Name: (.+); Type: ([A-Z ]+); Schema: [^;]+; Owner: .*\n--\n`)
	sessionSetting = regexp.MustCompile(`(?m)^SET default_\w+ = .*;$`) // of pg_dump's own
)

// dump returns what pg_dump says of a database, but for what is the queue's, pgvector's and
// goose's, in pg_dump's order: by kind and name, and what needs another behind it.
func dump(t *testing.T, url string) (list []section) {
	t.Helper()
	if _, err := exec.LookPath("pg_dump"); err != nil && os.Getenv("REQUIRE_POSTGRES") != "1" {
		t.Skip("pg_dump is not in the PATH")
	}
	cmd := exec.CommandContext(t.Context(), "pg_dump", "--inserts", "--no-owner", "--no-privileges", "--exclude-table=goose_db_version", "--dbname="+url) //nolint:gosec // of the tests
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pg_dump: %v: %s", err, said.Bytes())
	}
	text, _, _ := strings.Cut(string(out), "\n--\n-- PostgreSQL database dump complete")
	heads := sectionHead.FindAllStringSubmatchIndex(text, -1)
	for i, h := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		s := section{Name: text[h[2]:h[3]], Kind: text[h[4]:h[5]], Text: strings.TrimSpace(sessionSetting.ReplaceAllString(text[h[1]:end], ""))}
		if s.Kind != "SEQUENCE SET" && s.Text != "" && !strings.HasPrefix(s.Name, "river_") && !strings.HasPrefix(s.Name, "goose_") && !ofVectors(s) {
			list = append(list, s)
		}
	}
	return list
}

// flat leaves out of triggers the parentheses of ((a OR b) OR c), which the server forgets
// when it reads them.
func flat(list []section) (all []section) {
	for _, s := range list {
		if s.Kind == "TRIGGER" {
			s.Text = strings.NewReplacer("(", "", ")", "").Replace(s.Text)
		}
		all = append(all, s)
	}
	return all
}

// ofVectors reports whether a section is there for pgvector only.
func ofVectors(s section) bool {
	name, _, _ := strings.Cut(s.Name, "(")
	return slices.ContainsFunc(strings.Fields(name), store.OfVectors) || regexp.MustCompile(`\bvector\b`).MatchString(s.Name) // the extension and its casts
}

var (
	addedConstraint = regexp.MustCompile(`^ALTER TABLE ONLY public\.(\w+)\s+ADD (CONSTRAINT [^;]+);$`)
	referenced      = regexp.MustCompile(` REFERENCES public\.(\w+)\(`)
	identity        = regexp.MustCompile(`^ALTER TABLE public\.(\w+) ALTER COLUMN (\w+) ADD GENERATED ALWAYS AS IDENTITY `)
	nextAlter       = regexp.MustCompile(`([^)]);\s+ALTER TABLE ONLY public\.\w+ ALTER COLUMN `)
	searchPath      = regexp.MustCompile(`SET search_path TO .*`)
	among           = regexp.MustCompile(`\((\w+)\)::text = ANY \(\(ARRAY\[([^]]+)\]\)::text\[\]\)`)
)

// compose makes SQL of a dump that has less to do than pg_dump's own: a table is made with
// its keys and not changed afterwards. It works in any schema.
func compose(list []section) string {
	var before, behind, names []string
	tables, keys := map[string]string{}, map[string][]string{}
	for _, s := range list {
		if s.Kind == "TABLE" {
			names = append(names, s.Name)
			tables[s.Name] = nextAlter.ReplaceAllString(s.Text, "$1,\n    ALTER COLUMN ")
		} else if m := addedConstraint.FindStringSubmatch(s.Text); m != nil {
			keys[m[1]] = append(keys[m[1]], m[2])
		} else if m := identity.FindStringSubmatch(s.Text); m != nil {
			tables[m[1]] = strings.Replace(tables[m[1]], "    "+m[2]+" bigint NOT NULL", "    "+m[2]+" bigint GENERATED ALWAYS AS IDENTITY", 1)
		} else if len(names) == 0 {
			before = append(before, s.Text)
		} else {
			behind = append(behind, s.Text)
		}
	}
	made := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if made[name] {
			return
		}
		made[name] = true
		var inside strings.Builder
		for _, key := range keys[name] {
			if m := referenced.FindStringSubmatch(key); m != nil {
				add(m[1])
			}
			inside.WriteString(",\n    " + key)
		}
		before = append(before, strings.Replace(tables[name], "\n)", inside.String()+"\n)", 1))
	}
	for _, name := range names {
		add(name)
	}
	// Functions name what is made behind them.
	text := "SET LOCAL check_function_bodies = off;\n" + strings.Join(append(before, behind...), "\n")
	text = among.ReplaceAllString(text, "$1 IN ($2)") // what pg_dump writes is another expression when it is read again
	return searchPath.ReplaceAllString(strings.ReplaceAll(text, "public.", ""), "SET search_path FROM CURRENT")
}

// A schema is made where the connection says, and a type that somebody else made is left
// as it is, as the migrations leave it.
func TestANewPostgresSchemaIsMadeBesideOthers(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"another schema": `CREATE SCHEMA ours`, "a taken type": `CREATE SCHEMA ours; CREATE TYPE ours.rag AS (theirs INTEGER)`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, url := t.Context(), storetest.PostgresURL(t)
			if err := cluster.Exec(ctx, url, before); err != nil {
				t.Fatal(err)
			}
			at, err := neturl.Parse(url)
			if err != nil {
				t.Fatal(err)
			}
			query := at.Query()
			query.Set("search_path", "ours")
			at.RawQuery = query.Encode()
			s, err := store.Open(ctx, store.Options{URL: at.String(), Log: storetest.Log(t)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Migrate(ctx); err != nil {
				t.Fatal(err)
			}
			if err := s.InRead(ctx, func(tx *store.Tx) error {
				rows, err := store.Rows(ctx, tx, `SELECT
					(SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace)::text,
					(SELECT count(*) FROM pg_proc WHERE pronamespace = 'ours'::regnamespace AND 'search_path=ours' = ANY (proconfig))::text,
					(SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'ours.rag'::regclass)`, 3)
				if want := map[bool]string{true: "theirs", false: "enabled embedding_model"}[strings.Contains(before, "theirs")]; err == nil && (rows[0][0] != "0" || rows[0][1] == "0" || rows[0][2] != want) {
					t.Errorf("relations in public, functions that look in ours, fields of rag: %v", rows[0])
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
}
