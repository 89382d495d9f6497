// SPDX-License-Identifier: Apache-2.0
// The conformance suite has no way to show a token: every request of this process gets one.
import { createRequire, register } from 'node:module';

register('./conformance_hooks.mjs', import.meta.url);

const require = createRequire(process.argv[1]);
const { Agent, setGlobalDispatcher } = require('undici');
const token = `Bearer ${process.env.TEST_TOKEN}`;

// Node's own fetch and undici's request share the global dispatcher.
setGlobalDispatcher(new Agent().compose((dispatch) => (options, handler) => {
  const headers = options.headers ?? {};
  const added = Array.isArray(headers)
    ? [...headers, 'authorization', token]
    : { ...(headers[Symbol.iterator] ? Object.fromEntries(headers) : headers), authorization: token };
  return dispatch({ ...options, headers: added }, handler);
}));
