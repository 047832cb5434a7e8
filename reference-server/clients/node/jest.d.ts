import type { Server, ServerOptions } from './index.js';

/**
 * Starts a server before the tests of the file or `describe` block, and stops it afterwards. Returns
 * a function that returns the server.
 */
export function useServer(options?: ServerOptions): () => Server;
