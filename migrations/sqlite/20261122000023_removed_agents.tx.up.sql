-- For the check whether an agent was removed: its form must not create it again.
CREATE INDEX activities_removed_agents ON activities (subject_id) WHERE action = 'agent.removed';
