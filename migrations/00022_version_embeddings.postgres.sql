-- 00022, works with binaries from 00022: embeddings are compared in memory
-- Whoever changes an embedding raises the version of its person, and the row has
-- it: so a process knows which of those that it holds in memory are outdated. The
-- sketches of 00016 are not needed any more.

-- +goose Up
DROP TRIGGER semantic_sketch_removed ON semantic_memories;
DROP TRIGGER semantic_sketch_outdated ON semantic_memories;
DROP TRIGGER episodic_sketch_removed ON episodic_memories;
DROP TRIGGER episodic_sketch_outdated ON episodic_memories;
DROP FUNCTION memory_leaves_sketch();
DROP INDEX idx_semantic_memories_model;
DROP INDEX idx_episodic_memories_model;
ALTER TABLE semantic_memories DROP COLUMN sketch_id, DROP COLUMN sketch_place, ADD COLUMN embedding_version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE episodic_memories DROP COLUMN sketch_id, DROP COLUMN sketch_place, ADD COLUMN embedding_version BIGINT NOT NULL DEFAULT 0;
DROP TABLE memory_sketches;
CREATE INDEX idx_semantic_memories_model ON semantic_memories(user_id, embedding_model, embedding_version);
CREATE INDEX idx_episodic_memories_model ON episodic_memories(user_id, embedding_model, embedding_version);

-- Somebody who comes again after they were deleted has no version of before.
ALTER TABLE memory_people ADD COLUMN embeddings_version BIGINT NOT NULL DEFAULT floor(random() * 140737488355328)::bigint;

-- +goose StatementBegin
CREATE FUNCTION memory_embedding_changes() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND OLD.user_id <> NEW.user_id THEN
    UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = OLD.user_id;
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN NULL;
  END IF;
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = NEW.user_id
    RETURNING embeddings_version INTO NEW.embedding_version;
  NEW.embedding_version := COALESCE(NEW.embedding_version, 0);
  RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER semantic_embedding_added BEFORE INSERT ON semantic_memories
  FOR EACH ROW WHEN (NEW.embedding_model <> '') EXECUTE FUNCTION memory_embedding_changes();
CREATE TRIGGER semantic_embedding_changed BEFORE UPDATE ON semantic_memories
  FOR EACH ROW WHEN (OLD.embedding IS DISTINCT FROM NEW.embedding OR OLD.embedding_model <> NEW.embedding_model
    OR OLD.user_id <> NEW.user_id OR OLD.codebase_id IS DISTINCT FROM NEW.codebase_id)
  EXECUTE FUNCTION memory_embedding_changes();
CREATE TRIGGER semantic_embedding_removed AFTER DELETE ON semantic_memories
  FOR EACH ROW WHEN (OLD.embedding_model <> '') EXECUTE FUNCTION memory_embedding_changes();
CREATE TRIGGER episodic_embedding_added BEFORE INSERT ON episodic_memories
  FOR EACH ROW WHEN (NEW.embedding_model <> '') EXECUTE FUNCTION memory_embedding_changes();
CREATE TRIGGER episodic_embedding_changed BEFORE UPDATE ON episodic_memories
  FOR EACH ROW WHEN (OLD.embedding IS DISTINCT FROM NEW.embedding OR OLD.embedding_model <> NEW.embedding_model
    OR OLD.user_id <> NEW.user_id OR OLD.codebase_id IS DISTINCT FROM NEW.codebase_id OR OLD.expires_at <> NEW.expires_at)
  EXECUTE FUNCTION memory_embedding_changes();
CREATE TRIGGER episodic_embedding_removed AFTER DELETE ON episodic_memories
  FOR EACH ROW WHEN (OLD.embedding_model <> '') EXECUTE FUNCTION memory_embedding_changes();
