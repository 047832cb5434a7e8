// Prints what tap-parser reads from a file: node tap.mjs FILE MODULES

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [file, modules] = process.argv.slice(2);
const { Parser } = createRequire(`${modules}/`)('tap-parser');

const read = { points: [], problems: [], bailout: null };
const parser = new Parser({ strict: true });
parser.on('assert', ({ ok, name, todo, skip, diag }) => {
  read.points.push({ ok, name, todo, skip, diag });
});
parser.on('extra', (line) => read.problems.push(line));
parser.on('bailout', (reason) => { read.bailout = reason; });
parser.on('complete', ({ failures }) => {
  read.problems.push(...failures.map((failure) => failure.tapError).filter(Boolean));
  console.log(JSON.stringify(read));
});
parser.end(readFileSync(file, 'utf8'));
