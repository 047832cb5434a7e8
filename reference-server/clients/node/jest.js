'use strict';

const { serverHooks } = require('./index.js');

/* global beforeAll, afterAll */
exports.useServer = (options) => serverHooks(beforeAll, afterAll, options);
