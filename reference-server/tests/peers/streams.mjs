// The JavaScript client against the streams of the server: v5.channel.k8s.io, and port-forward with two channels a port.

import assert from 'node:assert';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { PassThrough } from 'node:stream';

// The package is wherever the test was told that it is.
const require = createRequire(`${process.argv[3]}/`);
const { Exec, KubeConfig, PortForward } = require('@kubernetes/client-node');

const config = new KubeConfig();
config.loadFromFile(process.argv[2]);

function collect() {
  const stream = new PassThrough();
  const pieces = [];
  stream.on('data', (piece) => pieces.push(piece));
  return { stream, text: () => Buffer.concat(pieces).toString() };
}

async function execute(command, stdin) {
  const [stdout, stderr] = [collect(), collect()];
  const status = await new Promise((resolve, reject) => {
    new Exec(config)
      .exec('default', 'one', 'c', command, stdout.stream, stderr.stream, stdin, false, resolve)
      .then((socket) => socket.on('error', reject), reject);
  });
  return { status, stdout: stdout.text(), stderr: stderr.text() };
}

const failed = await execute(['sh', '-c', 'echo out; echo err >&2; exit 7'], null);
assert.equal(failed.stdout, 'out\n');
assert.equal(failed.stderr, 'err\n');
assert.equal(failed.status.details.causes[0].message, '7');

const input = new PassThrough();
input.end('some\nlines\n');
const counted = await execute(['wc', '-l'], input);
assert.equal(counted.stdout.trim(), '2');
assert.equal(counted.status.status, 'Success');

const [back, errors, up] = [collect(), new PassThrough(), new PassThrough()];
await new PortForward(config).portForward('default', 'one', [7], back.stream, errors, up);
up.write('hello');
while (back.text() !== 'hello') {
  await once(back.stream, 'data');
}
process.exit(0);
