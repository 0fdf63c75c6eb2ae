package conformance_test

import (
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/app"
)

func memories004() []rule {
	const section = "MemoryTables"
	insert := func(c *check, table, text, more string) string {
		embedding := c.on(`zeroblob(1536)`, vector("x"))
		return `INSERT INTO ` + table + ` (user_id, run_id, ` + text + `, embedding) VALUES ('` + anybody004 + `', '` + run004 + `', 'By hand', ` + embedding + `)` + more
	}
	return []rule{
		{section: section, name: "episodic_memories", asks: "episodic_memories has the seed's columns in its order", differs: "lists are JSON, times have a zone; columns of ours follow",
			holds: func(c *check) {
				c.has("episodic_memories", "id", "user_id", "run_id", "content", "embedding", "sources", "access_count", "created_at", "updated_at", "confidence", "expires_at")
			}},
		{section: section, name: "semantic_memories", asks: "semantic_memories likewise", differs: "as above",
			holds: func(c *check) {
				c.has("semantic_memories", "id", "user_id", "run_id", "fact", "embedding", "confidence", "access_count", "created_at", "updated_at", "category", "source_events")
			}},
		{section: section, name: "EpisodicInsert", on: onPostgres, asks: "INSERT with the seed's columns alone: access_count 0, confidence 1.0, expires after 30 days",
			holds: func(c *check) {
				c.try(func(t trial) {
					c.insertsOr(t, insert(c, "episodic_memories", "content", ""))
					t.is("0|1|1", `SELECT access_count, confidence, abs(extract(epoch FROM expires_at - created_at) - 30 * 86400) < 5 FROM episodic_memories WHERE user_id = '`+anybody004+`'`)
				})
			}},
		{section: section, name: "SemanticInsert", on: onPostgres, asks: "INSERT with the seed's columns alone: access_count 1, confidence 0.5",
			holds: func(c *check) {
				c.try(func(t trial) {
					c.insertsOr(t, insert(c, "semantic_memories", "fact", ""))
					t.is("1|0.5", `SELECT access_count, confidence FROM semantic_memories WHERE user_id = '`+anybody004+`'`)
				})
			}},
		{section: section, name: "DefaultsOnSQLite", on: onSQLite, asks: "The defaults of both tables", differs: "SQLite's tables are the program's own: who inserts by hand gives the number and the hash of a memory, too",
			holds: func(c *check) {
				c.try(func(t trial) {
					t.exec(`INSERT INTO memory_people (user_id) VALUES ('` + anybody004 + `')`)
					c.insertsOr(t, `INSERT INTO semantic_memories (user_id, run_id, fact, seq, content_hash) VALUES ('`+anybody004+`', '`+run004+`', 'f', 1, 'h')`)
					t.is("1|0.5", `SELECT access_count, confidence FROM semantic_memories WHERE user_id = '`+anybody004+`'`)
					c.insertsOr(t, `INSERT INTO episodic_memories (user_id, run_id, content, seq, content_hash) VALUES ('`+anybody004+`', '`+run004+`', 'c', 2, 'h')`)
					t.is("0|1|1", `SELECT access_count, confidence, abs(julianday(expires_at) - julianday(created_at) - 30) < 0.001 FROM episodic_memories WHERE user_id = '`+anybody004+`'`)
				})
			}},
		{section: section, name: "Dimensions", asks: "Embeddings have 384 dimensions, and the database refuses others",
			holds: func(c *check) {
				p := c.the("snak")
				c.try(func(t trial) {
					t.refuses(`UPDATE semantic_memories SET embedding = `+c.on(`zeroblob(12)`, `'\x010203'::bytea`)+` WHERE user_id = '`+p.place()+`'`, "check")
				})
			}},
		{section: section, name: "EmbeddingType", on: onPostgres, asks: "embedding is vector(384)", open: "it is bytes in these tables, so that a database without pgvector is whole; casts take it for a vector where one is wanted, and semantic_vectors and episodic_vectors beside them have the vectors",
			holds: func(c *check) {
				c.needsVectors()
				for _, table := range []string{"episodic_memories", "semantic_memories"} {
					if got := c.one(`SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = '` + table + `'::regclass AND attname = 'embedding'`); got != "vector(384)" {
						c.Errorf("%s.embedding is %s", table, got)
					}
				}
			}},
		{section: section, name: "EmbeddingOperators", on: onPostgres, asks: "embedding <=> '[...]' and inserts of vectors work as written", differs: "by casts, which only a superuser may make",
			holds: func(c *check) {
				c.needsVectors()
				one := "array_fill(0.5::real, ARRAY[384])::vector"
				c.try(func(t trial) {
					t.exec(`INSERT INTO semantic_memories (user_id, run_id, fact, embedding) VALUES ('` + anybody004 + `', '` + run004 + `', 'f', ` + one + `)`)
					t.is("1", `SELECT round((1 - (embedding <=> CAST(`+one+` AS TEXT)::vector))::numeric) FROM semantic_memories WHERE user_id = '`+anybody004+`'`)
				})
			}},
		{section: section, name: "Categories", asks: "A fact is a preference, fact, skill or relationship", differs: "the database refuses other categories",
			holds: func(c *check) {
				p := c.the("snak")
				c.try(func(t trial) {
					for _, category := range []string{"preference", "fact", "skill", "relationship"} {
						t.exec(`UPDATE semantic_memories SET category = '` + category + `' WHERE user_id = '` + p.place() + `'`)
					}
					t.refuses(`UPDATE semantic_memories SET category = 'mood' WHERE user_id = '`+p.place()+`'`, "check")
				})
			}},
		{section: section, name: "FactsDoNotExpire", asks: "Semantic memories do not expire",
			holds: func(c *check) {
				if slices.ContainsFunc(c.columnsOf(c.sql, "public", "semantic_memories"), func(x column) bool { return x.name == "expires_at" }) {
					c.Errorf("they have expires_at")
				}
			}},
		{section: section, name: "episodic_time_idx", asks: "episodic_time_idx on (user_id, created_at DESC)",
			holds: func(c *check) {
				c.indexed("episodic_time_idx", "user_id,created_at")
				c.is("1", c.on(`SELECT "desc" FROM pragma_index_xinfo('episodic_time_idx') WHERE name = 'created_at'`,
					`SELECT indexdef LIKE '%created_at DESC)' FROM pg_indexes WHERE indexname = 'episodic_time_idx'`))
			}},
		{section: section, name: "semantic_category_idx", asks: "semantic_category_idx on (user_id, category)",
			holds: func(c *check) { c.indexed("semantic_category_idx", "user_id,category") }},
		{section: section, name: "VectorIndexes", on: onPostgres, asks: "episodic_embedding_idx and semantic_embedding_idx by ivfflat with 100 lists",
			open: "they are made when there are many vectors, and by HNSW, which is exact enough without tuning; a small database has none",
			holds: func(c *check) {
				c.needsVectors()
				for _, name := range []string{"episodic_embedding_idx", "semantic_embedding_idx"} {
					if c.one(`SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%ivfflat%' AND indexname = '`+name+`'`) != "1" {
						c.Errorf("no index %s by ivfflat", name)
					}
				}
			}},
	}
}

// insertsOr runs a statement whose refusal says that the rule does not hold.
func (c *check) insertsOr(t trial, statement string) {
	c.Helper()
	if _, err := t.tx.ExecContext(c.Context(), statement); err != nil {
		c.Fatalf("%s: %v", statement[:min(len(statement), 150)], err)
	}
}

// upsert and remember are the seed's functions, called as its users do.
func upsert(user, fact, more string) string {
	return fmt.Sprintf(`SELECT operation, round(similarity_score::numeric, 2), matched_fact FROM upsert_semantic_memory_smart('%s', '%s', '%s', %s%s)`, user, run004, fact, vector(fact), more)
}

func episode(user, content, more string) string {
	return fmt.Sprintf(`SELECT operation, round(similarity_score::numeric, 2), similar_memory_content FROM insert_episodic_memory_smart('%s', '%s', '%s', %s%s)`, user, run004, content, vector(content), more)
}

func retrieve(user, text, more string) string {
	return fmt.Sprintf(`SELECT memory_type, content, round(similarity::numeric, 2) FROM retrieve_similar_categorized_memories('%s', '%s', %s%s)`, user, run004, vector(text), more)
}

func vectors004() []rule {
	const section = "MemoryFunctions"
	rules := []rule{
		{name: "upsert_semantic_memory_smart", asks: "A new fact is inserted; a similar one is updated, surer by a step; both say so with similarity and the matched fact",
			holds: func(c *check) {
				c.try(func(t trial) {
					t.is("INSERT_NEW|NULL|NULL", upsert(anybody004, "prefers short answers", ", 'preference'"))
					t.is("UPDATE_SIMILAR|1|prefers short answers", strings.Replace(upsert(anybody004, "prefers short answers", ""), "round(similarity_score::numeric, 2)", "round(similarity_score::numeric, 0)", 1))
					t.is("1|0.6|2|preference", `SELECT count(*) OVER (), confidence, access_count, category FROM semantic_memories WHERE user_id = '`+anybody004+`'`)
				})
			}},
		{name: "SourceEventsAreCollected", asks: "Source events are aggregated, each once",
			holds: func(c *check) {
				c.try(func(t trial) {
					t.one(upsert(anybody004, "prefers short answers", ", NULL, ARRAY[3, 9]"))
					t.one(upsert(anybody004, "prefers short answers", ", NULL, ARRAY[9, 10]"))
					t.is("[3, 9, 10]", `SELECT CAST(source_events AS TEXT) FROM semantic_memories WHERE user_id = '`+anybody004+`'`)
				})
			}},
		{name: "ThresholdOfFacts", asks: "p_similarity_threshold is 0.85 unless given, and decides what is similar",
			holds: func(c *check) {
				c.is("1", `SELECT pg_get_function_arguments('upsert_semantic_memory_smart'::regproc) LIKE '%p_similarity_threshold double precision DEFAULT 0.85'`)
				c.try(func(t trial) {
					t.one(upsert(anybody004, "walks the dog daily", ""))
					t.is("INSERT_NEW", `SELECT operation FROM (`+upsert(anybody004, "walks the dog gladly", "")+`) x`)
					t.is("UPDATE_SIMILAR", `SELECT operation FROM (`+upsert(anybody004, "walks the dog badly", ", NULL, '{}', 0.5")+`) x`)
				})
			}},
		{name: "ParaphraseIsSurer", asks: "Saying the same in other words makes a fact surer, never less sure (beyond the seed)",
			holds: func(c *check) {
				c.try(func(t trial) {
					for range 4 {
						t.one(upsert(anybody004, "Prefers short answers", ""))
					}
					before := t.one(`SELECT confidence FROM semantic_memories WHERE user_id = '` + anybody004 + `'`)
					t.is("UPDATE_SIMILAR", `SELECT operation FROM (`+upsert(anybody004, "Prefers brief answers", ", NULL, '{}', 0.5")+`) x`)
					t.is("1", `SELECT confidence > `+before+` FROM semantic_memories WHERE user_id = '`+anybody004+`'`)
				})
			}},
		{name: "insert_episodic_memory_smart", asks: "A new episode is inserted with 30 days to live; a near duplicate is skipped and reported, and makes the other surer and counted",
			holds: func(c *check) {
				c.try(func(t trial) {
					t.is("INSERT_NEW|NULL|NULL", episode(anybody004, "deployed on friday", ", ARRAY['chat']"))
					t.is("1|0|30|[\"chat\"]", `SELECT confidence, access_count, round(extract(epoch FROM expires_at - created_at) / 86400), CAST(sources AS TEXT) FROM episodic_memories WHERE user_id = '`+anybody004+`'`)
					t.is("SKIP_DUPLICATE|deployed on friday", `SELECT operation, similar_memory_content FROM (`+episode(anybody004, "deployed on friday", "")+`) x`)
					t.is("1|1|1", `SELECT count(*) OVER (), confidence > 1, access_count FROM episodic_memories WHERE user_id = '`+anybody004+`'`)
				})
			}},
		{name: "ThresholdOfEpisodes", asks: "p_similarity_threshold is 0.95 and p_confidence 1.0 unless given",
			holds: func(c *check) {
				c.is("1", `SELECT pg_get_function_arguments('insert_episodic_memory_smart'::regproc) LIKE '%p_confidence double precision DEFAULT 1.0, p_similarity_threshold double precision DEFAULT 0.95'`)
			}},
		{name: "retrieve_similar_categorized_memories", asks: "Both kinds of memories, the most similar first, above 0.35, at most 10",
			holds: func(c *check) {
				c.is("1", `SELECT pg_get_function_arguments('retrieve_similar_categorized_memories'::regproc) LIKE '%p_threshold double precision DEFAULT 0.35, p_limit integer DEFAULT 10'`)
				c.try(func(t trial) {
					t.one(upsert(anybody004, "likes strong coffee in the morning", ""))
					t.one(episode(anybody004, "likes strong coffee", ""))
					t.one(upsert(anybody004, "plays chess", ""))
					t.is("episodic|likes strong coffee|1\nsemantic|likes strong coffee in the morning|1", strings.ReplaceAll(retrieve(anybody004, "likes strong coffee", ""), "round(similarity::numeric, 2)", "ceil(similarity)"))
					t.is("episodic", `SELECT memory_type FROM (`+retrieve(anybody004, "likes strong coffee", ", 0.35, 1")+`) x`)
					t.is("1|1|1", `SELECT metadata ? 'confidence', metadata ? 'access_count', metadata ? 'category' FROM retrieve_similar_categorized_memories('`+anybody004+`', '`+run004+`', `+vector("plays chess")+`) LIMIT 1`)
				})
			}},
		{name: "ExpiredAreNotFound", asks: "Expired episodes are filtered",
			holds: func(c *check) {
				c.try(func(t trial) {
					t.one(episode(anybody004, "was in rome", ""))
					t.is("was in rome", `SELECT content FROM (`+retrieve(anybody004, "was in rome", "")+`) x`)
					t.exec(`UPDATE episodic_memories SET expires_at = created_at - INTERVAL '1 second' WHERE user_id = '` + anybody004 + `'`)
					t.is("", `SELECT content FROM (`+retrieve(anybody004, "was in rome", "")+`) x`)
				})
			}},
		{name: "Stable", asks: "Retrieving is STABLE, flatten_array IMMUTABLE",
			holds: func(c *check) {
				c.is("flatten_array|i\nretrieve_similar_categorized_memories|s", `SELECT proname, provolatile FROM pg_proc WHERE proname IN ('flatten_array', 'retrieve_similar_categorized_memories') ORDER BY 1`)
			}},
		{name: "SecurityDefiner", asks: "The functions are SECURITY DEFINER with an explicit search_path", differs: "nobody may execute them until the owner of the tables grants it",
			holds: func(c *check) {
				c.is("3", `SELECT count(*) FROM pg_proc WHERE prosecdef AND array_to_string(proconfig, ' ') LIKE '%search_path=%'
					AND proname IN ('upsert_semantic_memory_smart', 'insert_episodic_memory_smart', 'retrieve_similar_categorized_memories')`)
			}},
		{name: "flatten_array", asks: "flatten_array removes what is there twice from an array of any type",
			holds: func(c *check) {
				c.is("{3,1,2}|{b,a}", `SELECT CAST(flatten_array(ARRAY[3, 1, 3, 2, 1]) AS TEXT), CAST(flatten_array(ARRAY['b', 'a', 'b']) AS TEXT)`)
			}},
		{name: "InputIsChecked", asks: "Wrong input is refused with a proper SQLSTATE",
			holds: func(c *check) {
				c.try(func(t trial) {
					for _, call := range []string{
						`upsert_semantic_memory_smart('` + anybody004 + `', '` + run004 + `', NULL, ` + vector("x") + `)`,
						`upsert_semantic_memory_smart(NULL, '` + run004 + `', 'f', ` + vector("x") + `)`,
						`upsert_semantic_memory_smart('` + anybody004 + `', '` + run004 + `', 'f', NULL)`,
						`upsert_semantic_memory_smart('` + anybody004 + `', '` + run004 + `', 'f', ` + vector("x") + `, NULL, '{}', 1.5)`,
						`retrieve_similar_categorized_memories('` + anybody004 + `', '` + run004 + `', ` + vector("x") + `, 0.35, -1)`,
					} {
						t.refuses(`SELECT * FROM `+call, "22023")
					}
				})
			}},
	}
	for i := range rules {
		holds := rules[i].holds
		rules[i].section, rules[i].on = section, onPostgres
		rules[i].holds = func(c *check) {
			c.needsVectors()
			holds(c)
		}
	}
	return rules
}

func flow004() []rule {
	const section = "MemoryArchitecture"
	known := func(p person) string {
		return `SELECT count(*), max(confidence) FROM semantic_memories WHERE user_id = '` + p.place() + `'`
	}
	return []rule{
		{section: section, name: "Deduplication", asks: "What is said twice is one memory, and surer", differs: "without pgvector, and on SQLite, the program compares; the rules are the functions'",
			holds: func(c *check) {
				p := c.person()
				p.says("/remember I like tea", "Saved as memory 1")
				p.rests()
				c.is("1|0.5", known(p))
				p.says("/remember I like tea", "1")
				p.rests()
				c.is("1|0.6", known(p))
			}},
		{section: section, name: "Paraphrase", asks: "The same in other words never makes a memory less sure (beyond the seed)",
			holds: func(c *check) {
				p := c.person()
				for range 3 {
					p.says("/remember Prefers short answers", "1")
				}
				p.rests()
				c.is("1|0.7", known(p))
				p.says("/remember Prefers brief answers")
				p.rests()
				c.is("1", `SELECT max(confidence) >= 0.7 FROM semantic_memories WHERE user_id = '`+p.place()+`'`)
			}},
		{section: section, name: "Retrieval", asks: "What is remembered of a person reaches the model that answers them, and nobody else's",
			holds: func(c *check) {
				p, other := c.person(), c.person()
				p.says("/remember My cat is called Mimi", "Saved as memory 1")
				p.rests()
				for who, want := range map[person]bool{p: true, other: false} {
					text := fmt.Sprintf("what is my cat called, asks %d", who.id)
					who.says(text, text+" [1 messages]")
					request, _ := c.model.asked(text)
					said := ""
					for _, m := range request.Messages {
						said += m.Text()
					}
					if strings.Contains(said, "Mimi") != want {
						c.Errorf("the model of %d was told %q", who.id, said)
					}
				}
			}},
		{section: section, name: "Forgetting", asks: "Memories are removed for good",
			holds: func(c *check) {
				p := c.person()
				p.says("/remember I live in Rome", "Saved as memory 1")
				p.says("/forget 1", "Deleted memory 1")
				p.rests()
				c.is("0", `SELECT count(*) FROM semantic_memories WHERE user_id = '`+p.place()+`'`)
			}},
	}
}

func care004() []rule {
	const section = "MaintenanceRecommendations"
	return []rule{
		{section: section, name: "Analyze", asks: "ANALYZE on the tables of memories", differs: "PostgreSQL's autovacuum does it; by hand it works, too",
			holds: func(c *check) {
				c.try(func(t trial) {
					t.exec("ANALYZE semantic_memories")
					t.exec("ANALYZE episodic_memories")
				})
			}},
		{section: section, name: "Monitoring", asks: "Growth of memories and the thresholds can be watched",
			holds: func(c *check) {
				printed := c.command("memory status", app.MemoryStatus)
				if !strings.Contains(printed, "facts just below 0.85") || !strings.Contains(printed, "episodes just below 0.95") {
					c.Errorf("bot memory status says %q", printed)
				}
			}},
		{section: section, name: "Scaling", asks: "List counts of IVFFlat, partitions, archives: to be considered", apart: "advice to an operator; docs/performance.md has what was measured without them"},
		{section: "DatabaseFiles", name: "SizeAndLines", asks: "01-init.sql has 228 lines, memory-init.sql 318", apart: "they are files of another program"},
	}
}
