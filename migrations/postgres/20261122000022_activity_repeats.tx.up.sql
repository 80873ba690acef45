-- One activity records the wrong passwords of one user in ten minutes. This table counts them. The
-- counts change, so they are not in activities, whose rows never change.
CREATE TABLE activity_repeats (
    user_id     uuid NOT NULL,
    action      text NOT NULL,
    -- The start of the ten minutes.
    period      timestamptz NOT NULL,
    activity_id uuid NOT NULL UNIQUE,
    -- The address of the first wrong password.
    address     text NOT NULL,
    -- The number of wrong passwords after the first one.
    repeats     bigint NOT NULL DEFAULT 0,
    -- Whether one of them came from another address than the first one.
    elsewhere   boolean NOT NULL DEFAULT false,
    PRIMARY KEY (user_id, action, period)
);
CREATE INDEX activity_repeats_period ON activity_repeats (period);
