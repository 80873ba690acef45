DROP TABLE hang_ups;
