DROP TABLE agent_last_tokens;
