// Package e2e tests the portal as customers use it. The built binary runs as a separate process,
// Chromium opens its pages, and a backend uses its keys over HTTP. The tests use the page objects
// in e2e/pages. They create accounts, agents and keys in the store, and see the results on the
// pages.
package e2e
