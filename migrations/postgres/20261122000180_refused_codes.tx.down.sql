ALTER TABLE authenticators DROP COLUMN refused_since;
ALTER TABLE authenticators DROP COLUMN refused_codes;
