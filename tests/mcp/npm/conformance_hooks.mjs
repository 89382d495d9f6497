// SPDX-License-Identifier: Apache-2.0
// The conformance suite is for a newer Node: fs.globSync, which its server mode never calls, is
// missing in Node 20.
const shim = 'data:text/javascript,' + encodeURIComponent(
  "export * from 'node:fs'; export { default } from 'node:fs';" +
  "import * as fs from 'node:fs'; export const globSync = fs.globSync ?? (() => []);");

export async function resolve(specifier, context, next) {
  if (specifier === 'fs' && context.parentURL?.includes('/conformance/'))
    return { url: shim, shortCircuit: true };
  return next(specifier, context);
}
