package workload

// Metadata is the part of a discovery document (OpenID Connect Discovery) with which the public
// keys of an issuer are found.
type Metadata struct {
	Issuer  string `json:"issuer"`
	JWKSURI string `json:"jwks_uri"`
}
