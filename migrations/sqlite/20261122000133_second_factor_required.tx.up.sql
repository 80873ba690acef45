-- Whether every user of the account needs an authenticator app or a passkey.
ALTER TABLE accounts ADD COLUMN second_factor_required BOOLEAN NOT NULL DEFAULT FALSE;
