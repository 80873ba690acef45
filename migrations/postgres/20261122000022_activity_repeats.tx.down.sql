DROP TABLE activity_repeats;
