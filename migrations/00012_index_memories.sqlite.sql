-- 00012, works with binaries from 00001: memories are found by their words
-- The words are prepared by the program, alike for both databases. The first
-- one of each row stands for its person, so that a search reads no others.

-- +goose Up
CREATE VIRTUAL TABLE episodic_words USING fts5(terms, content='episodic_memories', content_rowid='id', tokenize='unicode61');

-- +goose StatementBegin
CREATE TRIGGER episodic_words_added AFTER INSERT ON episodic_memories BEGIN
  INSERT INTO episodic_words(rowid, terms) VALUES (NEW.id, NEW.terms);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER episodic_words_removed AFTER DELETE ON episodic_memories BEGIN
  INSERT INTO episodic_words(episodic_words, rowid, terms) VALUES ('delete', OLD.id, OLD.terms);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER episodic_words_changed AFTER UPDATE OF terms ON episodic_memories BEGIN
  INSERT INTO episodic_words(episodic_words, rowid, terms) VALUES ('delete', OLD.id, OLD.terms);
  INSERT INTO episodic_words(rowid, terms) VALUES (NEW.id, NEW.terms);
END;
-- +goose StatementEnd

CREATE VIRTUAL TABLE semantic_words USING fts5(terms, content='semantic_memories', content_rowid='id', tokenize='unicode61');

-- +goose StatementBegin
CREATE TRIGGER semantic_words_added AFTER INSERT ON semantic_memories BEGIN
  INSERT INTO semantic_words(rowid, terms) VALUES (NEW.id, NEW.terms);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER semantic_words_removed AFTER DELETE ON semantic_memories BEGIN
  INSERT INTO semantic_words(semantic_words, rowid, terms) VALUES ('delete', OLD.id, OLD.terms);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER semantic_words_changed AFTER UPDATE OF terms ON semantic_memories BEGIN
  INSERT INTO semantic_words(semantic_words, rowid, terms) VALUES ('delete', OLD.id, OLD.terms);
  INSERT INTO semantic_words(rowid, terms) VALUES (NEW.id, NEW.terms);
END;
-- +goose StatementEnd
