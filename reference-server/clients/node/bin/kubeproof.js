#!/usr/bin/env node
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');
const { binaryPath } = require('../index.js');

const child = spawn(binaryPath(), process.argv.slice(2), { stdio: 'inherit' });
// The terminal sends SIGINT to both. The binary cleans up, and its exit code counts.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => signal === 'SIGINT' || child.kill(signal));
}
child.on('error', (error) => {
  console.error(`error: ${error.message}`);
  process.exitCode = 1;
});
child.on('exit', (code, signal) => {
  process.exitCode = code ?? 128 + constants.signals[signal];
});
