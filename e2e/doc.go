// Package e2e proves the portal the way its customers meet it: the built binary runs as a process of its own, a real
// Chromium looks at its pages, and a customer's backend uses its keys over HTTP. The tests speak through the page
// objects of e2e/pages, and know nothing of the program's inside: they never import the domain, and never read the
// database, but for the canary, which reads it as a thief would.
package e2e
