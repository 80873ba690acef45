// Keeps one token for each of your users, until 80 % of its life.
const tokens = new Map();

export async function tokenFor(userId, exchange) {
  const kept = tokens.get(userId);
  if (kept && Date.now() < kept.renewAt) {
    return kept.token;
  }
  // Requests at the same time share one exchange.
  const token = exchange();
  const entry = { token, renewAt: Infinity };
  tokens.set(userId, entry);
  try {
    entry.renewAt = Date.now() + (await token).expires_in * 800;
  } catch (error) {
    tokens.delete(userId);
    throw error;
  }
  if (tokens.size > 10_000) {
    tokens.delete(tokens.keys().next().value); // the oldest
  }
  return token;
}
