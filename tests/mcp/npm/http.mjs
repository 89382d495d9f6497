// SPDX-License-Identifier: Apache-2.0
// What a program does that uses the official TypeScript SDK over Streamable HTTP. Arguments: where
// the packages are, the server's address, and a directory that commands see too. The token is in
// TEST_TOKEN. Prints what it has seen as JSON.
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [place, url, directory] = process.argv.slice(2);
const { resolve } = createRequire(`${place}/package.json`);
const load = (name) => import(pathToFileURL(resolve(`@modelcontextprotocol/sdk/${name}`)).href);
const { Client } = await load('client/index.js');
const { StreamableHTTPClientTransport } = await load('client/streamableHttp.js');
const types = await load('types.js');

const seen = { errors: [] };

async function connect(fetch) {
  const client = new Client({ name: 'typescript', version: '1' }, { capabilities: {} });
  let ending = false; // then its own streams end, which are errors to it
  client.onerror = (error) => { if (!ending) seen.errors.push(String(error)); };
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { Authorization: `Bearer ${process.env.TEST_TOKEN}` } },
    reconnectionOptions: { initialReconnectionDelay: 50, maxReconnectionDelay: 200,
                           reconnectionDelayGrowFactor: 1.5, maxRetries: 20 },
    ...(fetch ? { fetch } : {}),
  });
  await client.connect(transport);
  const call = (name, input, options) =>
    client.callTool({ name, arguments: input }, undefined, options);
  const end = async () => {
    ending = true;
    await transport.terminateSession();
    await client.close();
  };
  return { transport, client, call, end };
}

const { client, transport, call, end } = await connect();
seen.version = transport.protocolVersion;
seen.session = transport.sessionId.length;
seen.tools = (await client.listTools()).tools.length;
await client.setLoggingLevel('info');
seen.executed = (await call('execute', { command: 'echo hello; exit 2' })).structuredContent;
seen.wrong = (await call('read_file', { path: 'no' })).isError;
seen.unknown = await call('nothing', {}).then(() => null, (error) => error.code);

const told = [];
await call('execute', { command: 'for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done' },
           { onprogress: (progress) => told.push(progress), resetTimeoutOnProgress: true });
seen.progress = told.length > 0;

const stop = new AbortController();
setTimeout(() => stop.abort('enough'), 300);
seen.aborted = await call('execute', { command: 'sleep 300' }, { signal: stop.signal })
  .then(() => false, () => true);
seen.many = (await Promise.all(Array.from({ length: 32 }, (_, n) =>
  call('execute', { command: `echo ${n}` }))))
  .every((result, n) => result.structuredContent.stdout === `${n}\n`);
await end();

// The connection of a call is cut under the SDK, which goes on with the stream by itself.
let cut;
const cutting = async (input, init) => {
  const response = await fetch(input, { ...init, signal: undefined });
  if (init?.method !== 'POST' || !String(init.body).includes('until'))
    return response;
  const reader = response.body.getReader();
  return new Response(new ReadableStream({
    async start(controller) {
      controller.enqueue((await reader.read()).value);
      cut = () => { reader.cancel(); controller.error(new Error('cut')); };
    },
  }), { status: response.status, headers: response.headers });
};
const second = await connect(cutting);
const gate = `${directory}/gate`;
const resumed = second.call('execute',
                            { command: `until [ -e ${gate} ]; do sleep 0.02; done; echo end` });
while (!cut)
  await new Promise((done) => setTimeout(done, 10));
const before = seen.errors.length;
cut();
await new Promise((done) => setTimeout(done, 100));
writeFileSync(gate, '');
seen.resumed = (await resumed).structuredContent.stdout;
seen.errors.splice(before); // it tells of the cut
await second.end();
seen.refused = await fetch(url, { method: 'POST' }).then((response) => response.status);
console.log(JSON.stringify(seen));
process.exit(0); // undici keeps connections for a while
