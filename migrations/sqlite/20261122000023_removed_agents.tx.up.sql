-- Finds out whether an agent was removed, so that its form cannot create it again.
CREATE INDEX activities_removed_agents ON activities (subject_id) WHERE action = 'agent.removed';
