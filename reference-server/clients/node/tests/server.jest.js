const https = require('node:https');
const { useServer } = require('kubeproof/jest');

/** Sends a request, and returns the status code. */
function send(server, method, path, body) {
  const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const request = https.request(server.url + path, { method, headers, ca: server.ca }, (it) =>
      it.resume().on('end', () => resolve(it.statusCode))
    );
    request.on('error', reject).end(body);
  });
}

describe('with a fault', () => {
  const server = useServer({ faults: ['already-exists-as-bad-request'] });

  test('a taken name returns 400', async () => {
    const path = '/api/v1/namespaces/default/configmaps';
    const body = JSON.stringify({ metadata: { name: 'first' } });
    expect(await send(server(), 'POST', path, body)).toBe(201);
    expect(await send(server(), 'POST', path, body)).toBe(400);
  });
});
