import { afterAll, beforeAll } from 'vitest';

import { serverHooks } from './index.js';

export const useServer = (options) => serverHooks(beforeAll, afterAll, options);
