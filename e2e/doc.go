// Package e2e tests the portal as customers use it. The built binary runs as a separate process,
// Chromium opens its pages, and a backend uses its keys over HTTP. The tests use the page objects
// in e2e/pages. They do not import the domain or read the database, except for the canary test,
// which searches a database dump for secrets.
package e2e
