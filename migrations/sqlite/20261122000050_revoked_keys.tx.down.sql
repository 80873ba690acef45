DROP INDEX activities_subject;
DROP INDEX api_keys_revoked;
