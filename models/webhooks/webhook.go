package webhooks

import (
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/record"
	"portal/models/value"
)

const (
	// MaxWebhooks is the largest number of an account's endpoints.
	MaxWebhooks = 5
	// DeliveriesListed is the number of deliveries on the page of an endpoint.
	DeliveriesListed = 100

	// maxWaiting is the number of an account's deliveries that wait. Beyond it the oldest fail.
	maxWaiting = 10_000
	// maxPassedOver is the number of deliveries that are due and may be passed over for the
	// next one.
	maxPassedOver = 10_000
	// DeliveriesKept is how long deliveries are kept for the page.
	DeliveriesKept = 30 * value.Day
	// deliveryLease is how long a claimed delivery belongs to one instance. It is longer than
	// an attempt.
	deliveryLease = time.Minute
	// previousSecretKept is how long the secret before a rotation signs too.
	previousSecretKept = 24 * time.Hour
	// longestRetryAfter is the longest wait that a receiver can ask for.
	longestRetryAfter = 24 * time.Hour

	// An endpoint is disabled if all deliveries of failingPeriod failed, at least
	// leastFailures.
	failingPeriod = 5 * value.Day
	leastFailures = 20
	// failureMailAfter is how long an endpoint fails until the owners get a mail.
	failureMailAfter = time.Hour
)

// deliveryRetries are the times from an attempt to the next one, which differ by up to a tenth.
var deliveryRetries = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
}

// Endpoint is a URL that gets events of its account.
type Endpoint struct {
	bun.BaseModel `bun:"table:webhook_endpoints,alias:endpoint"`

	ID        uuid.UUID `bun:",pk"`
	AccountID uuid.UUID
	URL       string              `bun:"url"`
	Groups    []record.EventGroup `bun:"event_groups"`
	CreatedAt time.Time

	Secret        []byte     // sealed
	KeyID         []byte     // of the key that sealed it
	Previous      []byte     `bun:",nullzero"` // sealed; the secret before a rotation
	PreviousKeyID []byte     `bun:",nullzero"`
	PreviousUntil *time.Time // from then on only the secret signs

	DisabledAt      *time.Time // also when it is removed
	RemovedAt       *time.Time // nobody sees it any more
	FailingSince    *time.Time // the first failure since the last success
	Failures        int64      // deliveries that have failed since then
	FailureMailedAt *time.Time
}

// Delivery is an event for an endpoint. Its content is read when it is sent.
type Delivery struct {
	bun.BaseModel `bun:"table:webhook_deliveries,alias:delivery"`

	EndpointID uuid.UUID `bun:",pk"`
	EventID    uuid.UUID `bun:",pk"` // of the activity or the call
	Event      string    `bun:",pk"` // the type
	AccountID  uuid.UUID
	CreatedAt  time.Time
	// Of the next attempt, or the end of the lease; nil: no more attempts.
	DueAt       *time.Time
	Attempts    int  // including the current one
	Final       bool // the next attempt is the last one
	DeliveredAt *time.Time
	Status      int    // of the last response; 0: none
	Response    string // its first characters, or why there was none
}

// DeliveryContent is what a claimed delivery sends.
type DeliveryContent struct {
	Delivery

	URL     string
	Body    []byte
	Secrets [][]byte // the first one is the current one
}

// DeliveryResult is the outcome of an attempt.
type DeliveryResult struct {
	Status     int           // of the response; 0: none
	Text       string        // the first characters of the response, or why there was none
	RetryAfter time.Duration // that the receiver asks for
	Gone       bool          // the receiver wants no more
}

// Succeeded reports whether the receiver has taken the event.
func (r DeliveryResult) Succeeded() bool { return r.Status >= 200 && r.Status < 300 }
