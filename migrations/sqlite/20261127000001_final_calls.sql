-- Whether a call cannot go on: nothing changes any more. While it is false, a visitor may come back
-- after ended_at. The end of the earlier calls was sent at once, so they are final.
-- The default is for instances of the previous version, which do not know the column.
ALTER TABLE calls ADD COLUMN final BOOLEAN NOT NULL DEFAULT false;
UPDATE calls SET final = true WHERE ended_at IS NOT NULL;
-- From now on, unseen_since of an ended call is the first list without the room, or when LiveKit
-- finished it.

CREATE INDEX calls_unsettled ON calls (id) WHERE NOT final;
DROP INDEX calls_open;
CREATE INDEX calls_open ON calls (account_id, api_key_id, agent_id, started_at) WHERE ended_at IS NULL;
-- A call that the portal has ended, or is about to end, stays ended: its room may not be opened
-- again.
CREATE INDEX calls_stopped ON calls (room_name) WHERE ending IS NOT NULL;
CREATE INDEX calls_stopped_at ON calls (ended_at) WHERE ending IS NOT NULL;
