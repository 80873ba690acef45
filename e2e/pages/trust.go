package pages

// TrustWorkload chooses "Workload identity (no secret)" and a platform in the form for a new key.
func (k Keys) TrustWorkload(platform string) Area {
	k.OpenKinds()
	choice := k.find("radio", "Workload identity (no secret)")
	k.ExpectNo("combobox", "Provider")
	k.must(choice.Check(), "choose a key without a secret")
	k.Choose("Provider", platform)
	if !k.JavaScript { // otherwise the choice shows the fields
		k.Click("Continue")
		k.settled()
	}
	k.ExpectText(`^Advanced$`)
	return k.Area
}

// Trust is the page of the trust rule of a key.
type Trust struct{ Frame }

// ExpectTrust waits until the tab shows the page.
func ExpectTrust(b *Tab, label string) Trust {
	b.ExpectHeading("Trust rule of " + label)
	return Trust{Frame{b}}
}
