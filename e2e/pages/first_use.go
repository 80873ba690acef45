package pages

// ExpectFirstRequestAwaited makes sure that the reveal waits for the key to be used.
func (r Reveal) ExpectFirstRequestAwaited() {
	r.t.Helper()
	r.visible(r.message(`Waiting for the first request`), "word of waiting")
}

// ExpectFirstRequestReceived waits until the reveal says that the key was used.
func (r Reveal) ExpectFirstRequestReceived() {
	r.t.Helper()
	r.visible(r.message(`First request received`), "word of the first request")
}

// CopyCommand presses the button that copies the curl command.
func (r Reveal) CopyCommand() {
	r.t.Helper()
	r.click(within(r.root, "button", "Copy curl"), "Copy curl")
}
