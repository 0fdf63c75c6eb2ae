-- 00031, works with binaries from 00001: what was prepared for a turn survives its process

-- +goose Up
-- JSON: that its sender may use the bot, what was said before and where the work
-- belongs, as found out before the turn of the event begins. NULL otherwise, and
-- once the event is over.
ALTER TABLE inbound_events ADD COLUMN preparation TEXT;
