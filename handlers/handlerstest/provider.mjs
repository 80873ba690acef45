// An OpenID Connect provider for tests. Its argument is JSON with the client and its redirect URIs.
// It listens on a free port of the loopback interface and prints its issuer. Anyone can sign in
// with any name: the name is the subject and the email. The email is verified unless the name
// begins with "unverified". There is no UserInfo for names that begin with "broken". With claims, a name can be "name|account|role".
import { createServer } from 'node:http'
import { Provider } from 'oidc-provider'

const { port, clientId, clientSecret, redirectUris, claims } = JSON.parse(process.argv[2])
const server = createServer()
server.listen(port ?? 0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`
  const provider = new Provider(issuer, {
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: redirectUris, subject_type: claims ? 'pairwise' : 'public' }],
    // The subject of "name|account|role" is the name.
    subjectTypes: ['public', 'pairwise'],
    pairwiseIdentifier: (_, sub) => sub.split('|')[0],
    conformIdTokenClaims: !claims,
    claims: { openid: claims ? ['sub', 'portal_account', 'portal_role'] : ['sub'], email: ['email', 'email_verified'] },
    cookies: { keys: ['a key of the tests'] },
    pkce: { required: () => true },
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: (use) => {
        if (use === 'userinfo' && sub.startsWith('broken')) throw new Error('UserInfo is broken for this name')
        const [email, portal_account, portal_role] = sub.split('|')
        return { sub, email, email_verified: !sub.startsWith('unverified'), portal_account, portal_role }
      },
    }),
  })
  provider.on('server_error', (_, error) => console.error(error))
  provider.on('grant.error', (_, error) => console.error(error.message, error.error_detail))
  server.on('request', provider.callback())
  console.log(issuer)
})
process.on('SIGTERM', () => process.exit(0))
process.stdin.on('end', () => process.exit(0)).resume()
