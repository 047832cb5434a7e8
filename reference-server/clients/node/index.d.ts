/** Options of a server. */
export interface ServerOptions {
  /** Serve TLS with new certificates. Default: true. */
  tls?: boolean;
  /** Deliberate bugs. `kubeproof serve --list-faults` lists them. */
  faults?: readonly string[];
  /** Files with objects that exist before the server is ready. */
  load?: readonly string[];
  /** Bearer token of a user without permissions. */
  userToken?: string;
  /** More arguments of `kubeproof serve`. */
  arguments?: readonly string[];
  /** Milliseconds until the server must be ready. Default: 10000. */
  timeout?: number;
}

/** A running server. It stops when the process exits, if `stop` was not called. */
export interface Server {
  /** The URL, such as `https://127.0.0.1:41234`. */
  readonly url: string;
  /** The bearer token of the administrator. */
  readonly token: string;
  /** The certificate authority in PEM. Empty without TLS. */
  readonly ca: string;
  /** A file with the certificate authority. */
  readonly caFile: string;
  /** The path of a kubeconfig of the administrator. */
  readonly kubeconfig: string;
  /** Stops the server and removes its files. A second call does nothing. */
  stop(): Promise<void>;
}

/** Starts a server with its own state on a free port. Rejects if it does not start. */
export function startServer(options?: ServerOptions): Promise<Server>;

/** Returns the path of the binary. Throws if the package of this platform is missing. */
export function binaryPath(): string;

/**
 * Adds hooks that start and stop a server, for test frameworks other than Jest and Vitest. Returns
 * a function that returns the server.
 */
export function serverHooks(
  beforeAll: (hook: () => Promise<void>) => void,
  afterAll: (hook: () => Promise<void>) => void,
  options?: ServerOptions
): () => Server;
