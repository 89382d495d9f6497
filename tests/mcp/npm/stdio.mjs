// SPDX-License-Identifier: Apache-2.0
// What a program does that uses the official TypeScript SDK. Arguments: where the packages are, a
// directory to offer as a root, and the server's command line. Prints what it has seen as JSON.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [place, root, command, ...args] = process.argv.slice(2);
const { resolve } = createRequire(`${place}/package.json`);
const load = (name) => import(pathToFileURL(resolve(`@modelcontextprotocol/sdk/${name}`)).href);
const { Client } = await load('client/index.js');
const { StdioClientTransport } = await load('client/stdio.js');
const types = await load('types.js');

const client = new Client({ name: 'typescript', version: '1' },
                          { capabilities: { roots: { listChanged: true } } });
client.setRequestHandler(types.ListRootsRequestSchema,
                         () => ({ roots: [{ uri: pathToFileURL(root).href, name: 'project' }] }));
const logged = [], seen = { errors: [] };
client.setNotificationHandler(types.LoggingMessageNotificationSchema,
                              (note) => { logged.push(note.params.level); });
client.onerror = (error) => { seen.errors.push(String(error)); };
const transport = new StdioClientTransport({ command, args, stderr: 'ignore' });
await client.connect(transport);
const call = (name, input, options) => client.callTool({ name, arguments: input }, undefined, options);

seen.server = client.getServerVersion().name;
seen.version = transport.protocolVersion ?? null;
await client.setLoggingLevel('debug');
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
seen.listed = (await call('list_dir', {})).structuredContent.entries.map((entry) => entry.path);
seen.executed = (await call('execute', { command: 'echo hello; exit 2' })).structuredContent;
seen.image = (await call('read_file', { path: 'logo.png' })).content[0].type;
seen.wrong = (await call('read_file', { path: 'no' })).isError;
seen.unknown = await call('nothing', {}).then(() => null, (error) => error.code);

const told = [];
await call('execute', { command: 'for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done' },
           { onprogress: (progress) => told.push(progress.message), resetTimeoutOnProgress: true });
seen.progress = told.length > 0;

const stop = new AbortController();
setTimeout(() => stop.abort('enough'), 300);
seen.aborted = await call('execute', { command: 'sleep 300' }, { signal: stop.signal })
  .then(() => false, () => true);
seen.timed_out = await call('execute', { command: 'sleep 300' }, { timeout: 300 })
  .then(() => null, (error) => error.code);

seen.many = (await Promise.all(Array.from({ length: 32 }, (_, n) =>
  call('execute', { command: `echo ${n}` }))))
  .every((result, n) => result.structuredContent.stdout === `${n}\n`);
seen.resources = (await client.listResources()).resources.map((one) => one.uri);
seen.text = (await client.readResource({ uri: 'pinfold://workspace/src/main.c' })).contents[0].text;
seen.templates = (await client.listResourceTemplates()).resourceTemplates.length;
seen.missing = await client.readResource({ uri: 'pinfold://workspace/no' })
  .then(() => null, (error) => error.code);
await client.ping();
seen.logged = logged.includes('info');
await client.close();
console.log(JSON.stringify(seen));
