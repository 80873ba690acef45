package templates

import "portal/models"

// RevokedKeysPage is /api-keys/revoked.
type RevokedKeysPage struct {
	Keys  []RevokedKeyRow // the latest revocation first
	Days  int             // how long a revoked key is listed
	Older string          // URL of the next page; empty on the last one
	Paged bool            // this is not the first page
}

func (RevokedKeysPage) screen() screen {
	return screen{file: "api_keys/revoked.html", section: SectionAPIKeys}
}

func (RevokedKeysPage) fragment() string { return "revoked-keys" }

// RevokedKeyRow is one revoked key.
type RevokedKeyRow struct {
	models.RevokedKey

	Revoked  Moment // or when it expired
	Expired  bool
	Refusals Count // since the revocation
}
