package webhooks

import "time"

// PollEvery sets how often the sender looks for deliveries, before it runs.
func (s *Sender) PollEvery(interval time.Duration) { s.poll = interval }
