-- One activity records the wrong passwords of one user in ten minutes. This table counts them. The
-- counts change, so they are not in activities, whose rows never change.
CREATE TABLE activity_repeats (
    user_id     TEXT NOT NULL,
    action      TEXT NOT NULL,
    -- The start of the ten minutes.
    period      TIMESTAMP NOT NULL,
    activity_id TEXT NOT NULL UNIQUE,
    -- The address of the first wrong password.
    address     TEXT NOT NULL,
    -- The number of wrong passwords after the first one.
    repeats     INTEGER NOT NULL DEFAULT 0,
    -- Whether one of them came from another address than the first one.
    elsewhere   BOOLEAN NOT NULL DEFAULT false,
    PRIMARY KEY (user_id, action, period)
);
CREATE INDEX activity_repeats_period ON activity_repeats (period);
