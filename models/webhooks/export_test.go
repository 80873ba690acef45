package webhooks

// MaxPassedOver is the number of deliveries that a claim passes over.
const MaxPassedOver = maxPassedOver
