DROP TABLE password_reset_links;
