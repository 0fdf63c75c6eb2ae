-- 00022, works with binaries from 00022: embeddings are compared in memory
-- Whoever changes an embedding raises the version of its person, and the row has
-- it: so a process knows which of those that it holds in memory are outdated. The
-- sketches of 00016 are not needed any more.

-- +goose Up
DROP TRIGGER semantic_sketch_removed;
DROP TRIGGER semantic_sketch_outdated;
DROP TRIGGER episodic_sketch_removed;
DROP TRIGGER episodic_sketch_outdated;
DROP INDEX idx_semantic_memories_model;
DROP INDEX idx_episodic_memories_model;
ALTER TABLE semantic_memories DROP COLUMN sketch_id;
ALTER TABLE semantic_memories DROP COLUMN sketch_place;
ALTER TABLE episodic_memories DROP COLUMN sketch_id;
ALTER TABLE episodic_memories DROP COLUMN sketch_place;
DROP TABLE memory_sketches;

ALTER TABLE memory_people ADD COLUMN embeddings_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE semantic_memories ADD COLUMN embedding_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE episodic_memories ADD COLUMN embedding_version INTEGER NOT NULL DEFAULT 0;
CREATE INDEX idx_semantic_memories_model ON semantic_memories(user_id, embedding_model, embedding_version);
CREATE INDEX idx_episodic_memories_model ON episodic_memories(user_id, embedding_model, embedding_version);

-- Somebody who comes again after they were deleted has no version of before.
-- +goose StatementBegin
CREATE TRIGGER memory_people_begin AFTER INSERT ON memory_people
BEGIN
  UPDATE memory_people SET embeddings_version = abs(random() >> 16) WHERE user_id = NEW.user_id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER semantic_embedding_added AFTER INSERT ON semantic_memories WHEN NEW.embedding_model <> ''
BEGIN
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = NEW.user_id;
  UPDATE semantic_memories SET embedding_version = COALESCE((SELECT embeddings_version FROM memory_people WHERE user_id = NEW.user_id), 0)
  WHERE id = NEW.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER semantic_embedding_changed AFTER UPDATE OF embedding, embedding_model, user_id, codebase_id ON semantic_memories
WHEN OLD.embedding IS NOT NEW.embedding OR OLD.embedding_model <> NEW.embedding_model
  OR OLD.user_id <> NEW.user_id OR OLD.codebase_id IS NOT NEW.codebase_id
BEGIN
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = OLD.user_id AND user_id <> NEW.user_id;
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = NEW.user_id;
  UPDATE semantic_memories SET embedding_version = COALESCE((SELECT embeddings_version FROM memory_people WHERE user_id = NEW.user_id), 0)
  WHERE id = NEW.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER semantic_embedding_removed AFTER DELETE ON semantic_memories WHEN OLD.embedding_model <> ''
BEGIN
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = OLD.user_id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER episodic_embedding_added AFTER INSERT ON episodic_memories WHEN NEW.embedding_model <> ''
BEGIN
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = NEW.user_id;
  UPDATE episodic_memories SET embedding_version = COALESCE((SELECT embeddings_version FROM memory_people WHERE user_id = NEW.user_id), 0)
  WHERE id = NEW.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER episodic_embedding_changed AFTER UPDATE OF embedding, embedding_model, user_id, codebase_id, expires_at ON episodic_memories
WHEN OLD.embedding IS NOT NEW.embedding OR OLD.embedding_model <> NEW.embedding_model
  OR OLD.user_id <> NEW.user_id OR OLD.codebase_id IS NOT NEW.codebase_id
  OR OLD.expires_at <> NEW.expires_at
BEGIN
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = OLD.user_id AND user_id <> NEW.user_id;
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = NEW.user_id;
  UPDATE episodic_memories SET embedding_version = COALESCE((SELECT embeddings_version FROM memory_people WHERE user_id = NEW.user_id), 0)
  WHERE id = NEW.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER episodic_embedding_removed AFTER DELETE ON episodic_memories WHEN OLD.embedding_model <> ''
BEGIN
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = OLD.user_id;
END;
-- +goose StatementEnd
