// This file compiles only if the client of openapi-fetch has the types of requests and responses.
import createClient from 'openapi-fetch';
import type { components, paths } from './api';

const portal = createClient<paths>({ baseUrl: 'https://portal.example.com', headers: { Authorization: 'Bearer nas_...' } });

export async function newToken(agentId: string): Promise<string> {
  const { data, error } = await portal.POST('/api/widget/token', { body: { agentId } });
  if (error) throw new Error(error.code);
  return data.access_token;
}

export async function activities(after?: string): Promise<components['schemas']['Activity'][]> {
  const { data, error } = await portal.GET('/api/activity', { params: { query: { after } } });
  if (error) throw new Error(error.error);
  return data.activities;
}

export async function seconds(): Promise<number> {
  const { data } = await portal.GET('/api/usage');
  // @ts-expect-error a report has no such field
  data?.lines;
  return (data?.usage ?? []).reduce((sum, day) => sum + day.seconds, 0);
}
