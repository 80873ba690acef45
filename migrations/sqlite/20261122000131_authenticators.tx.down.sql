DROP TABLE pending_sign_ins;
DROP TABLE recovery_codes;
DROP TABLE authenticators;
