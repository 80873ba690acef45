package templates

// Contents is the index of the documentation. Every documentation page shows it.
type Contents []ContentsGroup

// ContentsGroup is the index of a page or a part of it.
type ContentsGroup struct {
	Name    string
	Entries []ContentsEntry
}

// ContentsEntry is a link to a section.
type ContentsEntry struct {
	Name, URL string
	Method    string // of an operation; empty otherwise
}

// NewContents returns the index.
func NewContents(reference ReferencePage, changelog ChangelogPage) Contents {
	guides := ContentsGroup{Name: "Guides"}
	for _, guide := range GuideSections() {
		guides.Entries = append(guides.Entries, ContentsEntry{Name: guide.Name, URL: "/docs/guides#" + guide.ID})
	}
	contents := Contents{
		guides,
		{Name: "API reference", Entries: []ContentsEntry{
			{Name: "Introduction", URL: "/docs#introduction"},
			{Name: "Errors", URL: "/docs#errors"},
		}},
	}
	for _, group := range reference.Groups {
		part := ContentsGroup{Name: group.Name}
		for _, o := range group.Operations {
			part.Entries = append(part.Entries, ContentsEntry{Name: o.Summary, URL: "/docs#" + o.ID, Method: o.Method})
		}
		contents = append(contents, part)
	}
	codes := ContentsGroup{Name: "Error codes"}
	for _, code := range reference.Errors {
		codes.Entries = append(codes.Entries, ContentsEntry{Name: code.Code, URL: "/docs#" + code.Code})
	}
	versions := ContentsGroup{Name: "Changelog"}
	for _, release := range changelog.Releases {
		versions.Entries = append(versions.Entries, ContentsEntry{Name: release.Version, URL: "/docs/changelog#v" + release.Version})
	}
	return append(contents, codes, versions)
}
