DROP TABLE invitation_mails;
DROP INDEX invitations_mail_token;
ALTER TABLE invitations DROP COLUMN mail_token_hash;
