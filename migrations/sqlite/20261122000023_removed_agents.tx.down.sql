DROP INDEX activities_removed_agents;
