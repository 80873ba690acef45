package models_test

import "portal/models"

// claimsIssuer is the provider that decides about accounts and roles.
const claimsIssuer = "https://claims.example"

// claimedBy returns the identity of a person whom the provider gives a role in the account.
func claimedBy(c customer, email string, role models.Role) models.Identity {
	identity := identityOf(email)
	identity.Issuer = claimsIssuer
	identity.Access = &models.IdentityAccess{AccountID: c.ID, Role: role}
	return identity
}
