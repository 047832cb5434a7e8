'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const READY = 'listening on ';
const STOP_TIMEOUT = 5000;

/** The processes that this process must not leave behind. */
const running = new Set();

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Returns the path of the binary, which is in the package of this platform. */
function binaryPath() {
  if (process.env.KUBEPROOF_BINARY) return process.env.KUBEPROOF_BINARY;
  const platform = `@kubeproof/${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${platform}/bin/kubeproof`);
  } catch {
    throw new Error(
      `expected the package ${platform}; install kubeproof with optional dependencies, ` +
        'or set KUBEPROOF_BINARY to the path of a binary'
    );
  }
}

/** Starts a server with its own state on a free port. */
async function startServer(options = {}) {
  const { tls = true, faults = [], load = [], userToken, timeout = 10_000 } = options;
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'kubeproof-'));
  const kubeconfig = path.join(directory, 'kubeconfig');
  const remove = () => fs.rmSync(directory, { recursive: true, force: true });
  let child;
  try {
    child = spawn(
      binaryPath(),
      [
        ...['serve', '--listen', '127.0.0.1:0', '--kubeconfig-out', kubeconfig],
        ...(tls ? ['--tls'] : []),
        ...faults.flatMap((name) => ['--fault', name]),
        ...load.flatMap((file) => ['--load', file]),
        ...(userToken === undefined ? [] : ['--user-token', userToken]),
        ...(options.arguments ?? []),
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] }
    );
    running.add(child);
    child.once('exit', () => running.delete(child));
    const url = await ready(child, timeout);
    const config = JSON.parse(fs.readFileSync(kubeconfig, 'utf8'));
    const authority = config.clusters[0].cluster['certificate-authority-data'] ?? '';
    const ca = Buffer.from(authority, 'base64').toString();
    const caFile = path.join(directory, 'ca.crt');
    fs.writeFileSync(caFile, ca);
    const token = config.users[0].user.token;
    let stopped;
    const stop = () => (stopped ??= end(child).finally(remove));
    return { url, token, ca, caFile, kubeconfig, stop };
  } catch (error) {
    child?.kill('SIGKILL');
    remove();
    throw error;
  }
}

/** Waits for the first line of the output, and returns the URL in it. */
function ready(child, timeout) {
  return new Promise((resolve, reject) => {
    let out = '';
    let log = '';
    const fail = (problem) => {
      clearTimeout(timer);
      reject(new Error(`kubeproof serve ${problem}: ${(out + log).trim()}`));
    };
    const timer = setTimeout(() => fail(`was not ready after ${timeout} ms`), timeout);
    child.once('error', (error) => fail(`did not start (${error.message})`));
    // The streams end before `close`, so the message is complete.
    child.once('close', (code) => fail(`exited with code ${code}`));
    child.stderr.on('data', (data) => (log += data));
    child.stdout.on('data', (data) => {
      out += data;
      const [line, rest] = out.split('\n', 2);
      if (rest === undefined || !line.startsWith(READY)) return;
      clearTimeout(timer);
      resolve(line.slice(READY.length).trim());
      // The server does not keep a program alive that forgot to stop it.
      child.unref();
      child.stdout.unref?.();
      child.stderr.unref?.();
    });
  });
}

function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    child.ref();
    child.kill('SIGTERM');
  });
}

/** Adds hooks that start and stop a server, and returns a function that returns it. */
function serverHooks(beforeAll, afterAll, options) {
  let server;
  beforeAll(async () => {
    server = await startServer(options);
  });
  afterAll(async () => {
    await server?.stop();
  });
  return () => {
    if (!server) throw new Error('expected a call in a test or a hook: the server starts before');
    return server;
  };
}

exports.binaryPath = binaryPath;
exports.startServer = startServer;
exports.serverHooks = serverHooks;
