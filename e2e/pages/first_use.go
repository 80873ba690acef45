package pages

// ExpectFirstRequestAwaited checks that the reveal waits for the first request with the key.
func (r Reveal) ExpectFirstRequestAwaited() {
	r.t.Helper()
	r.visible(r.message(`Waiting for the first request`), "status that it waits for the first request")
}

// ExpectFirstRequestReceived waits until the reveal shows that the key was used.
func (r Reveal) ExpectFirstRequestReceived() {
	r.t.Helper()
	r.visible(r.message(`First request received`), "status of the first request")
}

// CopyCommand presses the button that copies the curl command.
func (r Reveal) CopyCommand() {
	r.t.Helper()
	r.click(within(r.root, "button", "Copy curl"), "Copy curl")
}
