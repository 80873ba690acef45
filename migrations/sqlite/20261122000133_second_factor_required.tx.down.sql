ALTER TABLE accounts DROP COLUMN second_factor_required;
