// This file compiles only if openapi-typescript generates the error codes as literal types.
import type { components, paths } from './api';

type Responses = paths['/api/widget/token']['post']['responses'];
type Refused = Responses[401]['content']['application/json'];

export const refused: Refused = { error: 'The API key has been revoked.', code: 'UNAUTHORIZED' };
// @ts-expect-error another code
export const other: Refused = { error: 'The API key has been revoked.', code: 'NOT_FOUND' };
export const code: components['schemas']['ErrorCode'] = 'RATE_LIMITED';
// @ts-expect-error no such code
export const unknown: components['schemas']['ErrorCode'] = 'UNKNOWN';
