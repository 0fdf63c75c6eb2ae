-- 00024, works with binaries from 00001: how near memories were to each other

-- +goose Up
-- In thousandths: how much a memory was like the nearest other one when it was stored,
-- or like the text that confirmed it or took its place last. NULL where nothing was
-- there to compare.
ALTER TABLE semantic_memories ADD COLUMN nearness BIGINT CHECK (nearness >= 0 AND nearness <= 1000);
ALTER TABLE episodic_memories ADD COLUMN nearness BIGINT CHECK (nearness >= 0 AND nearness <= 1000);
