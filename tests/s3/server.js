// SPDX-License-Identifier: Apache-2.0
// A server that speaks S3 and checks signatures: server.js MODULES DIRECTORY. It has the bucket
// "bucket" and the key "S3RVER", prints where it listens, and ends with its standard input.
'use strict'

const [modules, directory] = process.argv.slice(2)
const S3rver = require(`${modules}/@20minutes/s3rver`)
const server = new S3rver({
  address: '127.0.0.1', port: 0, directory, silent: true, vhostBuckets: false,
  configureBuckets: [{ name: 'bucket', configs: [] }],
})

server.run().then(({ address, port }) => console.info('http://%s:%d', address, port))
process.stdin.on('end', () => process.exit(0)).resume()
