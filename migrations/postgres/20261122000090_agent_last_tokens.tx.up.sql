-- When a widget token was last issued for each agent. Written in the background, without a foreign
-- key, so that the write does not fail when one of many agents is removed meanwhile.
CREATE TABLE agent_last_tokens (
    agent_id  uuid PRIMARY KEY,
    issued_at timestamptz NOT NULL
);
