package mailer

import "time"

// Hurry makes the mailer look for mails more often.
func (m *Mailer) Hurry() { m.poll, m.pause = 10*time.Millisecond, 50*time.Millisecond }
