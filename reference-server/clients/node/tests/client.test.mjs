// The installed package, with the official client.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import test from 'node:test';

import { CoreV1Api, KubeConfig, Watch } from '@kubernetes/client-node';
import { startServer } from 'kubeproof';

const configMap = (name) => ({ metadata: { name }, data: { key: 'value' } });

function load(server) {
  const config = new KubeConfig();
  config.loadFromFile(server.kubeconfig);
  return config;
}

test('the client writes, reads and watches', async () => {
  const server = await startServer();
  const config = load(server);
  const core = config.makeApiClient(CoreV1Api);
  const namespace = 'default';
  const first = await core.createNamespacedConfigMap({ namespace, body: configMap('first') });
  const read = await core.readNamespacedConfigMap({ namespace, name: 'first' });
  assert.deepEqual(read.data, { key: 'value' });

  const event = new Promise((resolve, reject) => {
    const query = { resourceVersion: first.metadata.resourceVersion };
    const path = '/api/v1/namespaces/default/configmaps';
    const seen = (type, object) => resolve({ type, name: object.metadata.name });
    new Watch(config).watch(path, query, seen, reject).catch(reject);
  });
  await core.createNamespacedConfigMap({ namespace, body: configMap('second') });
  assert.deepEqual(await event, { type: 'ADDED', name: 'second' });

  const again = core.createNamespacedConfigMap({ namespace, body: configMap('first') });
  await assert.rejects(again, { code: 409 });
  await server.stop();
  await server.stop();
  assert.equal(existsSync(server.kubeconfig), false);
});

test('options reach the server', async () => {
  writeFileSync('shop.yaml', 'kind: Namespace\napiVersion: v1\nmetadata: {name: shop}\n');
  const server = await startServer({ tls: false, load: ['shop.yaml'], userToken: 'jane' });
  const get = (token) =>
    fetch(`${server.url}/api/v1/namespaces/shop`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal((await get(server.token)).status, 200);
  assert.equal((await get('jane')).status, 403);
  await server.stop();
});

test('a server that does not start shows its message', async () => {
  await assert.rejects(
    startServer({ faults: ['no-such-fault'] }),
    /exited with code 2: .*no fault has the name "no-such-fault"/s
  );
});

test('a program that forgets to stop the server ends, and the server too', () => {
  const script = `require('kubeproof').startServer().then((s) => console.log(s.url))`;
  const run = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', timeout: 60_000 });
  assert.equal(run.status, 0, run.stderr);
  const probe = `fetch(${JSON.stringify(run.stdout.trim())}).catch((e) => console.log(e.cause.code))`;
  const refused = spawnSync(process.execPath, ['-e', probe], { encoding: 'utf8' });
  assert.equal(refused.stdout.trim(), 'ECONNREFUSED');
});

test('the exit code of the command line is that of the binary', () => {
  const run = spawnSync('npx', ['--no-install', 'kubeproof', 'explain', 'no/such-case']);
  assert.equal(run.status, 2);
});
