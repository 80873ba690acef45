package pages

// TrustWorkload chooses "Workload identity (no secret)" and a platform in the form for a new key.
func (k Keys) TrustWorkload(platform string) Area {
	choice := k.find("radio", "Workload identity (no secret)")
	k.must(choice.Check(), "choose a key without a secret")
	k.proceed()
	k.Expect("combobox", "Provider")
	k.Choose("Provider", platform)
	k.proceed()
	k.Expect("textbox", "Issuer")
	return k.Area
}

// proceed shows the fields of what was chosen. With JavaScript, the choice has done so.
func (k Keys) proceed() {
	if !k.JavaScript {
		k.Click("Continue")
		k.settled()
	}
}

// Trust is the page of the trust rule of a key.
type Trust struct{ Frame }

// ExpectTrust waits until the tab shows the page.
func ExpectTrust(b *Tab, label string) Trust {
	b.ExpectHeading("Trust rule of " + label)
	return Trust{Frame{b}}
}
